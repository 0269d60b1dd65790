// What benches of pages share: when a condition holds in a painted frame, and how long an interaction takes to one.

export const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

/** From the start of the navigation to the frame in which the selector is found. */
export const shown = (page, selector) =>
  page.evaluate(
    (wanted) =>
      new Promise((resolve) => {
        const look = () =>
          document.querySelector(wanted)
            ? requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
            : requestAnimationFrame(look);
        look();
      }),
    selector,
  );

/** From the start of the navigation to the first frame that shows something. The browser may tell it later. */
export const painted = (page) =>
  page.evaluate(
    () =>
      new Promise((resolve) => {
        const take = (list) =>
          list.getEntriesByName("first-contentful-paint").forEach((entry) => resolve(entry.startTime));
        new PerformanceObserver(take).observe({ type: "paint", buffered: true });
      }),
  );

/** The longest time from an event to the painted frame after it, while action() runs in the page. */
export const act = (page, action, argument) =>
  page.evaluate(
    async ([text, value]) => {
      const painted = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      const began = performance.now();
      await new Function("painted", "value", `return (${text})(painted, value)`)(painted, value);
      await painted();
      return performance.now() - began;
    },
    [action.toString(), argument],
  );
