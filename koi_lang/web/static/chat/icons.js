// Drawings for buttons, each of a few lines on a square of 24.

import { html } from "../vendor/preact.js";

const LINES = {
  send: "M12 20V5M5 11l7-7 7 7",
  stop: "M7 7h10v10H7z",
  plus: "M12 5v14M5 12h14",
  clip: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.4 3.4 0 0 1 4.8 4.8l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4L14.5 7.3",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  down: "M12 4v12M6 11l6 6 6-6M5 20h14",
  more: "M5 12h.1M12 12h.1M19 12h.1",
  pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
  person: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM5 20c.8-3.6 3.5-5 7-5s6.2 1.4 7 5",
  below: "M12 5v14M6 13l6 6 6-6",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
  hand: "M12 3l8 3v6c0 4.5-3.2 7.7-8 9-4.8-1.3-8-4.5-8-9V6zM12 8v5M12 16v.2",
  ask: "M9 9a3 3 0 1 1 4.4 2.6c-1 .6-1.4 1.1-1.4 2.2M12 17v.2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",
  list: "M9 6h11M9 12h11M9 18h11M4.5 6h.1M4.5 12h.1M4.5 18h.1",
  tick: "M5 12.5l4.5 4.5L19 7",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  again: "M20 5v5h-5M19.5 10A8 8 0 1 0 20 14",
  back: "M15 5l-7 7 7 7",
  next: "M9 5l7 7-7 7",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
};

/** A drawing that says nothing of its own to a screen reader. */
export const Icon = ({ name }) => html`<svg class="icon-drawing" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${LINES[name]} /></svg>`;
