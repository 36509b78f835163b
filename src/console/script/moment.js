// The slider that chooses a moment.
import { own } from "./page.js";

/** A slider that was not moved for this long has come to rest. */
const SLIDER_REST_MS = 500;

const LONG = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };

/** Opens the page as of a moment, in ISO 8601; without one, as of now. */
export function openMoment(asOf) {
  const moment = new URL(own.address, location.href);
  if (asOf === undefined) moment.searchParams.delete("as_of");
  else moment.searchParams.set("as_of", asOf);
  location.assign(moment);
}

/** Shows the moment of the slider, and opens it once the slider has come to rest: keys move it in many steps. */
function watchSlider(slider) {
  const { language, timezone: timeZone } = slider.dataset;
  const format = new Intl.DateTimeFormat(language, { ...LONG, timeZone });
  const [shown, position] = slider.closest(".slide").querySelector("output").children;
  let rest;
  slider.addEventListener("input", () => {
    const isNow = slider.value === slider.max;
    const moment = isNow ? "Now" : format.format(Number(slider.value));
    slider.setAttribute("aria-valuetext", moment);
    shown.textContent = moment;
    position.textContent = "";
  });
  slider.addEventListener("change", () => {
    clearTimeout(rest);
    rest = setTimeout(() => {
      openMoment(slider.value === slider.max ? undefined : new Date(Number(slider.value)).toISOString());
    }, SLIDER_REST_MS);
  });
}

document.querySelectorAll("#slider").forEach(watchSlider);
