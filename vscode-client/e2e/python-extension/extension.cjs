// SPDX-License-Identifier: Apache-2.0
// Stands in for the Python extension, under its name: the documented interface "environments" and nothing else
// (https://github.com/microsoft/vscode-python/wiki/Python-Environment-APIs). What is active is an environment's folder,
// as the documentation warns it may be; only resolving it names the interpreter.
const vscode = require("vscode");

const FOLDER = "/environments/";

exports.activate = () => {
  const pythons = { first: process.env.GPADVISOR_E2E_PYTHON };
  let active = "first";
  const changed = new vscode.EventEmitter();
  const environmentPath = () => ({ id: `id of ${active}`, path: FOLDER + active });
  return {
    ready: Promise.resolve(),
    /** Not of the interface: what the user does by "Python: Select Interpreter". */
    select: (name, python) => {
      pythons[name] = python;
      active = name;
      changed.fire({ ...environmentPath(), resource: undefined });
    },
    environments: {
      onDidChangeActiveEnvironmentPath: changed.event,
      getActiveEnvironmentPath: environmentPath,
      resolveEnvironment: async (environment) => {
        const path = typeof environment === "string" ? environment : environment.path;
        const python = path.startsWith(FOLDER) ? pythons[path.slice(FOLDER.length)] : undefined;
        return python === undefined
          ? undefined
          : {
              ...environmentPath(),
              executable: { uri: vscode.Uri.file(python), bitness: "64-bit", sysPrefix: path },
              environment: undefined,
              version: undefined,
              tools: [],
            };
      },
    },
  };
};
