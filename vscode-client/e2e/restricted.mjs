export async function restricted(workspace) {}
