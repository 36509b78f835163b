// Applies a filter as soon as one of its fields changes, and a link that sorts or that chooses a range. The page is
// changed in place, so that the field or link keeps the focus, and the window its scroll position.
import { isPlain } from "./refresh-in-place.js";
import { showAddress } from "./event-panel.js";

function applyFilter(event) {
  const form = event.target.closest("form[data-apply]");
  if (form === null) return;
  event.preventDefault();
  // A field may be invalid while the operator still types, such as a part of a year.
  if (!form.checkValidity()) return;
  const filled = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  // The page shows each chosen value as a chip, so the list for the choice is reset.
  if (form.dataset.apply === "chips") for (const select of form.querySelectorAll("select")) select.value = "";
  const href = filled.size === 0 ? form.action : `${form.action}?${filled}`;
  openInPlace(href);
}

function openInPlace(href) {
  if (href === location.href) return;
  history.pushState(null, "", href);
  showAddress();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-apply]");
  if (link === null || event.shiftKey || !isPlain(event)) return;
  event.preventDefault();
  openInPlace(link.href);
});

document.addEventListener("change", applyFilter);
document.addEventListener("submit", applyFilter);
