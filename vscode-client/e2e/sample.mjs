export async function sample(workspace) {}
