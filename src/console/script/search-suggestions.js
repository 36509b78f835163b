// Shows suggestions while an operator types into the search box. Without suggestions, Enter leads to the page with the
// results.
import { fetchPage } from "./refresh-in-place.js";

/** Suggestions are fetched once no key was pressed for this time, in ms. */
const REST_MS = 120;

const form = document.querySelector(".find");
const field = form.querySelector("input");
const list = document.createElement("div");
list.id = "suggestions";
list.className = "palette";
list.hidden = true;
list.setAttribute("role", "listbox");
list.setAttribute("aria-label", "Suggestions");
form.append(list);
for (const [name, value] of [
  ["role", "combobox"],
  ["aria-autocomplete", "list"],
  ["aria-controls", list.id],
  ["aria-expanded", "false"],
]) {
  field.setAttribute(name, value);
}

/** Timer that the last change of the text started; undefined once the list was closed. */
let rest;
/**
 * Text that the search box had when the list showed its suggestions or an arrow key chose one; empty while the list is
 * hidden. Enter follows the chosen suggestion only while the box still has this text.
 */
let shown = "";

function close() {
  clearTimeout(rest);
  rest = undefined;
  shown = "";
  list.hidden = true;
  field.setAttribute("aria-expanded", "false");
  field.removeAttribute("aria-activedescendant");
}

const options = () => [...list.querySelectorAll("[role=option]")];
const chosenOption = () => options().find((option) => option.ariaSelected === "true");

function choose(option) {
  for (const one of options()) one.setAttribute("aria-selected", String(one === option));
  field.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

async function suggest() {
  const query = new URLSearchParams(new FormData(form));
  query.set("suggest", "");
  const [wanted, timer] = [field.value, rest];
  const page = await fetchPage(`/find?${query}`);
  // While the page was fetched, the text in the search box was changed, or the list was closed, for example because the
  // box lost the focus. The fetched suggestions are then outdated.
  if (timer !== rest) return;
  const chosen = shown === wanted ? chosenOption()?.href : undefined;
  list.replaceChildren(...page.querySelector("#found").children);
  for (const group of list.children) {
    group.setAttribute("role", "group");
    for (const item of group.querySelectorAll("ul, li")) item.setAttribute("role", "none");
    const heading = group.querySelector("h2");
    heading.setAttribute("role", "presentation");
    // A listbox may contain only options, so the link to all results is replaced by its text.
    for (const link of heading.querySelectorAll("a")) link.replaceWith(link.textContent);
  }
  for (const [at, option] of list.querySelectorAll(".option").entries()) {
    option.id = `suggestion-${at}`;
    option.tabIndex = -1;
    option.setAttribute("role", "option");
  }
  const [first] = options();
  if (first === undefined) return close();
  shown = wanted;
  list.hidden = false;
  field.setAttribute("aria-expanded", "true");
  choose(options().find(({ href }) => href === chosen) ?? first);
}

field.addEventListener("input", () => {
  clearTimeout(rest);
  if (field.value.trim() === "") return close();
  rest = setTimeout(() => suggest().catch(close), REST_MS);
});

field.addEventListener("keydown", (event) => {
  const all = options();
  const at = all.indexOf(chosenOption());
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") {
    if (!list.hidden) event.preventDefault();
    close();
  } else if (list.hidden) {
    return;
  } else if (step !== undefined) {
    event.preventDefault();
    shown = field.value;
    choose(all[(at + step + all.length) % all.length]);
  } else if (event.key === "Enter" && shown === field.value) {
    event.preventDefault();
    all[at].click();
  }
});

// If pressing the mouse took the focus from the search box, the suggestions would close before the click follows one.
list.addEventListener("mousedown", (event) => event.preventDefault());
field.addEventListener("blur", close);
