// Keeps a page of the sandbox up to date: fetches it each second and changes the differences in place. Without this
// script the pages are the same but do not update.
import { Idiomorph } from "./idiomorph.js";

const REFRESH_MS = 1_000;

/** Has the script keep the choices that the user made in a form. */
const MORPH = {
  callbacks: { beforeNodeMorphed: (node) => !(node instanceof HTMLInputElement || node instanceof HTMLSelectElement) },
};

const connection = document.querySelector("#connection");

function setConnection(text, isLost) {
  if (connection.textContent !== text) connection.textContent = text;
  connection.classList.toggle("lost", isLost);
}

async function fetchAgain() {
  // oxlint-disable-next-line no-restricted-globals -- runs in a browser, and calls the page's own sandbox
  const response = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!response.ok) throw new Error(`the sandbox answered ${response.status}`);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const id of ["#main", "#clock"]) Idiomorph.morph(document.querySelector(id), page.querySelector(id), MORPH);
}

async function refresh() {
  try {
    // Does not fetch while the page is hidden, to save work.
    if (!document.hidden) await fetchAgain();
    setConnection("Live.", false);
  } catch {
    setConnection("Connection lost: what you see may be old.", true);
  } finally {
    setTimeout(refresh, REFRESH_MS);
  }
}

void refresh();
