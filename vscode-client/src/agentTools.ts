// SPDX-License-Identifier: Apache-2.0
// The tools of `gpadvisor mcp` for the language models of VS Code. The server answers; a program runs once the user has
// seen it and agreed.

import * as vscode from "vscode";
import { commandOf } from "./decide/agentTools";
import { TOOLS } from "./generated/tools";
import { ToolMessage } from "./messages";
import type { Session } from "./session";

type Arguments = Readonly<Record<string, unknown>>;

export function registerAgentTools(session: Session): vscode.Disposable {
  return vscode.Disposable.from(
    ...TOOLS.map((tool) => vscode.lm.registerTool(`gpadvisor_${tool.name}`, new AgentTool(session, tool))),
  );
}

class AgentTool implements vscode.LanguageModelTool<Arguments> {
  public constructor(
    private readonly session: Session,
    private readonly tool: (typeof TOOLS)[number],
  ) {}

  public prepareInvocation({ input }: vscode.LanguageModelToolInvocationPrepareOptions<Arguments>): vscode.PreparedToolInvocation {
    const said = { invocationMessage: `GPAdvisor: ${this.tool.title}` };
    if (!this.tool.runs) {
      return said;
    }
    const folder = vscode.workspace.workspaceFolders?.[0]?.name ?? "";
    const message = new vscode.MarkdownString("Nsight Compute or CUPTI measures it while it runs");
    message.appendText(folder === "" ? ":" : ` in ${folder}:`).appendCodeblock(commandOf(input["command"]), "text");
    return { ...said, confirmationMessages: { title: "Run this program under the profiler?", message } };
  }

  public async invoke(
    { input }: vscode.LanguageModelToolInvocationOptions<Arguments>,
    token: vscode.CancellationToken,
  ): Promise<vscode.LanguageModelToolResult> {
    if (!vscode.workspace.isTrusted) {
      throw new Error("the workspace is not trusted: nothing is compiled, read or run");
    }
    // VS Code does not come here before the user has agreed to what prepareInvocation shows.
    const asked = { name: this.tool.name, arguments: input, agreed: this.tool.runs };
    const answer = await this.session.request(ToolMessage, asked, token);
    if (answer === undefined) {
      throw new Error("the GPAdvisor server is not running; the command 'GPAdvisor: Show Logs' says why");
    }
    return new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart(answer.text)]);
  }
}
