// SPDX-License-Identifier: Apache-2.0
// In the place of a language model: asks for a tool and its arguments, and shows the answer.
const vscode = require("vscode");

exports.activate = (context) => {
  const call = async () => {
    const [, name, input] = /^(\w+) (.*)$/.exec(await vscode.window.showInputBox({ title: "Tool and arguments" }));
    try {
      const options = { input: JSON.parse(input), toolInvocationToken: undefined };
      const { content } = await vscode.lm.invokeTool(name, options);
      const { items, skipped } = JSON.parse(content[0].value);
      void vscode.window.showInformationMessage(`Answer: ${items.length} items, ${skipped.length} skipped`);
    } catch (error) {
      void vscode.window.showWarningMessage(`Refused: ${error.message}`);
    }
  };
  context.subscriptions.push(vscode.commands.registerCommand("model.callTool", call));
};
