// Disables the buttons of a bar for many rows while no row is ticked, and says why. The buttons keep the focus.
import { afterFetch } from "./refresh-in-place.js";

function markBars() {
  for (const reason of document.querySelectorAll(".bulk > small")) {
    const isEmpty = reason.closest("form").querySelector(":checked") === null;
    reason.hidden = !isEmpty;
    for (const button of reason.parentNode.querySelectorAll("button")) {
      button.ariaDisabled = isEmpty ? "true" : null;
      if (isEmpty) button.setAttribute("aria-describedby", reason.id);
      else button.removeAttribute("aria-describedby");
    }
  }
}

afterFetch.push(markBars);
document.addEventListener("change", markBars);
// A browser may tick boxes that were ticked when the operator left the page, until this event.
addEventListener("pageshow", markBars);

document.addEventListener("click", (event) => {
  if (event.target.closest("button[aria-disabled=true]") !== null) event.preventDefault();
});
