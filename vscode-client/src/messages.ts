// SPDX-License-Identifier: Apache-2.0
// The custom messages with their types.

import { NotificationType, RequestType, RequestType0 } from "vscode-languageclient/node";
import * as protocol from "./generated/protocol";

export const HeatMessage = new NotificationType<protocol.HeatParams>(protocol.HEAT);
export const StatusMessage = new NotificationType<protocol.StatusParams>(protocol.STATUS);
export const FixCheckedMessage = new NotificationType<protocol.FixCheckedParams>(protocol.FIX_CHECKED);
export const OverviewChangedMessage = new NotificationType<protocol.OverviewChangedParams>(protocol.OVERVIEW_CHANGED);
export const SassMessage = new RequestType<protocol.SassParams, protocol.SassResult, void>(protocol.SASS);
export const KernelsMessage = new RequestType<protocol.KernelsParams, protocol.KernelsResult, void>(
  protocol.KERNELS,
);
export const ExplainMessage = new RequestType<protocol.ExplainParams, protocol.ExplainResult, void>(
  protocol.EXPLAIN,
);
export const OverviewMessage = new RequestType<protocol.OverviewParams, protocol.OverviewResult, void>(
  protocol.OVERVIEW,
);
export const CompareMessage = new RequestType<protocol.CompareParams, protocol.CompareResult, void>(protocol.COMPARE);
export const PageMessage = new RequestType<protocol.PageParams, protocol.PageResult, void>(protocol.PAGE);
export const DebugInformationMessage = new RequestType0<protocol.DebugInformationResult, void>(
  protocol.DEBUG_INFORMATION,
);
export const ToolMessage = new RequestType<protocol.ToolParams, protocol.ToolResult, void>(protocol.TOOL);
