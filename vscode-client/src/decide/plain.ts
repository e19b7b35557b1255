// SPDX-License-Identifier: Apache-2.0
// Names and sentences from files that anybody can have written, as text and nothing else.

/** What would reorder or hide letters is shown as a replacement. */
export function visible(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (letter) => (/\s/.test(letter) ? " " : "\u{FFFD}"));
}

/**
 * The same where VS Code reads marks: in notifications, the status bar and lists it makes a link of `[a](command:b)`,
 * which runs that command, and an icon of `$(a)`.
 */
export function plain(text: string): string {
  return visible(text).replaceAll("](", "] (").replaceAll("$(", "$ (");
}
