/** All HTML elements that pages of the console use. */
const ELEMENTS = new Set(
  `html head meta title link script body header nav main footer section h1 h2 h3 p a b small span bdi ul ol li div dl dt dd
   pre code output table thead tbody tr th td figure figcaption svg g rect line text use symbol details summary dialog time meter progress
   form label input kbd select option button fieldset legend textarea`.split(/\s+/),
);

/** SVG elements that the console uses: inside a `symbol`, where they draw an icon, and as the bars of a chart. */
const SHAPES = new Set(["path", "circle", "rect", "line", "polyline", "polygon", "ellipse"]);

/**
 * Lists the parts of a page that the console does not write itself: other elements, event handlers, and external
 * addresses.
 */
export async function oddIn(page: string): Promise<readonly string[]> {
  const odd: string[] = [];
  let drawn = 0;
  const rewriter = new HTMLRewriter();
  for (const place of ["symbol > *", ".plot > svg > path", ".curve > path", ".funnel > svg > path"]) {
    rewriter.on(place, {
      element({ tagName }) {
        if (SHAPES.has(tagName) && !ELEMENTS.has(tagName)) drawn -= 1;
      },
    });
  }
  rewriter.on("*", {
    element(element) {
      const { tagName } = element;
      if (!ELEMENTS.has(tagName)) {
        if (SHAPES.has(tagName)) drawn += 1;
        else odd.push(tagName);
      }
      if (tagName === "script" && element.getAttribute("src") !== "/console.js") odd.push("a script that is not ours");
      for (const [name = "", value = ""] of element.attributes) {
        if (name.startsWith("on") || name === "style") odd.push(`${tagName} ${name}`);
        if (tagName === "use" && name === "href" && /^#icon-\w+$/.test(value)) continue;
        if ((name === "href" || name === "src") && !/^(\/(?!\/)|\?|#main$|#confirm-|data:,$)/.test(value))
          odd.push(value);
      }
    },
  });
  await rewriter.transform(new Response(page)).text();
  return drawn === 0 ? odd : [...odd, "a shape outside of an icon and of a chart"];
}
