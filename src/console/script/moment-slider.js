// Handles the slider that chooses the moment of the log that a page shows.
import { own } from "./refresh-in-place.js";

/** The slider has come to rest once it was not moved for this time, in ms. */
const SLIDER_REST_MS = 500;

const LONG = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };

/** Opens the page as of the moment `asOf`, ISO 8601, or as of now if it is undefined. */
export function openMoment(asOf) {
  const moment = new URL(own.address, location.href);
  if (asOf === undefined) moment.searchParams.delete("as_of");
  else moment.searchParams.set("as_of", asOf);
  location.assign(moment);
}

/**
 * Shows the slider's moment in words. Opens the page as of this moment only once the slider rests, because keys move it
 * in many steps.
 */
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
