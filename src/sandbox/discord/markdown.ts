import { render, type Rendered, type Rule } from "../rendered.ts";

const whole = (match: RegExpExecArray): string => match[0];
const first = (match: RegExpExecArray): string => match[1] ?? "";

/** Discord's markdown, as its clients read it: https://docs.discord.com/developers/reference#message-formatting */
const RULES: readonly Rule[] = [
  { pattern: /\\([^\dA-Za-z\s])/y, shows: first },
  { mark: "code block", pattern: /```([^]+?)```/y, shows: first },
  { mark: "code", pattern: /(`+)([^]*?[^`])\1(?!`)/y, shows: (match) => match[2] ?? "" },
  { mark: "mention", pattern: /@(?:everyone|here)|<@[!&]?\d+>|<#\d+>|<\/[^:>]+:\d+>|<id:\w+>/y, shows: whole },
  { mark: "timestamp", pattern: /<t:-?\d+(?::\w)?>/y, shows: whole },
  { mark: "emoji", pattern: /<a?:\w+:\d+>|:[^\s:]+:/y, shows: whole },
  { mark: "bracketed link", pattern: /<([^: >]+:\/[^ >]+)>/y, shows: first },
  { pattern: /https?:\/\/[^\s<]+[^<.,:;"'\]\s]/iy, shows: whole },
  { mark: "masked link", pattern: /\[([^\]]+)\]\(([^)\s]+)[^)]*\)/y, inner: first },
  { mark: "heading", pattern: /\s*#{1,3} +([^\n]+)/y, lineStart: true, inner: first },
  { mark: "small print", pattern: /-# +([^\n]+)/y, lineStart: true, inner: first },
  { mark: "quote", pattern: /\s*>(?:>>)? ([^\n]*)/y, lineStart: true, inner: first },
  { mark: "list", pattern: /[^\S\n]*(?:[-*+]|\d+\.) +([^\n]+)/y, lineStart: true, inner: first },
  { mark: "bold", pattern: /\*\*([^]+?)\*\*(?!\*)/y, inner: first },
  { mark: "underlined", pattern: /__([^]+?)__(?!_)/y, inner: first },
  { mark: "struck", pattern: /~~(?=\S)([^]*?\S)~~/y, inner: first },
  { mark: "spoiler", pattern: /\|\|([^]+?)\|\|/y, inner: first },
  { mark: "italic", pattern: /\*(?=\S)([^*]+?)\*(?!\*)/y, inner: first },
  { mark: "italic", pattern: /\b_([^_]+?)_\b/y, inner: first },
];

export function renderDiscord(content: string): Rendered {
  return render(content, RULES);
}
