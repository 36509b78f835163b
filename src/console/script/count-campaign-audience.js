// Counts a campaign's audience while the operator describes it in the campaign's form.

/** Controller that aborts the count of the audience in progress; undefined before the first count. */
let counting;

/** Says how many recipients the audience has now and why others get no message, or which field is wrong. */
export async function countAudience(form) {
  counting?.abort();
  counting = new AbortController();
  const asked = new URLSearchParams();
  const fields = [...form.querySelectorAll("[type=hidden][name=name], fieldset :is(input, select, textarea)")];
  for (const { name, value } of fields) {
    for (const line of value.split("\n")) if (line.trim() !== "") asked.append(name, line.trim());
  }
  // oxlint-disable-next-line no-restricted-globals -- runs in a browser, and calls the page's own service
  const response = await fetch(`/social/campaigns/count?${asked}`, { signal: counting.signal }).catch(() => undefined);
  const answer = response?.ok || response?.status === 422 ? await response.json().catch(() => undefined) : undefined;
  if (answer === undefined) return;
  const { errors = [], due, known, not_due: notDue = [], left_out: leftOut = [] } = answer;
  for (const field of fields) field.setCustomValidity("");
  for (const { path, message } of errors) form.elements[path.slice(1)]?.setCustomValidity(message);
  const output = form.querySelector("[data-count]");
  const words = JSON.parse(output.dataset.count);
  const others = [...notDue, ...leftOut].map(
    ({ reason, recipients }) => `${words[reason] ?? reason.replaceAll("_", " ")} ${recipients}`,
  );
  output.value = errors.map(({ message }) => message).join(". ");
  if (response.ok) {
    output.value = `${due} of ${known} may get a message now.`;
    if (others.length > 0) output.value += ` The others: ${others.join(", ")}.`;
  }
}

document.addEventListener("change", ({ target }) => {
  const form = target.closest("form:has([data-count])");
  if (form !== null && target.closest("fieldset") !== null) void countAudience(form);
});
