// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { commandOf } from "../src/decide/agentTools";

it("a program that a model wants to run is shown word by word", () => {
  const words = ["./app", "--size=4", "a b", "; rm -rf ~", "it's", "", "\u{202e}gpj\n"];
  assert.equal(commandOf(words), String.raw`./app --size=4 'a b' '; rm -rf ~' 'it'\''s' '' '`.concat("\u{FFFD}gpj '"));
  assert.equal(commandOf("./app"), "");
});
