import { DISPATCH_FILTER_WORDS } from "../../delivery/dead-letter-filter.ts";
import { Option } from "../shared/command.ts";

/** What selects dead letters and dispatches in doubt, beside their channel. */
export const errorOption = () => new Option("--error <class>", DISPATCH_FILTER_WORDS.error);
export const linkOption = () => new Option("--link <link>", DISPATCH_FILTER_WORDS.link);
export const fromOption = () => new Option("--from <moment>", DISPATCH_FILTER_WORDS.from);
export const toOption = () => new Option("--to <moment>", DISPATCH_FILTER_WORDS.to);
