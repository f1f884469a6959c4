// Numbers, times and sizes to words.

/** Seconds as `0.3 s`, `2 min 05 s`, `3 h 10 min`. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 0.0995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  const two = (number) => String(number).padStart(2, "0");
  return minutes < 60
    ? `${minutes} min ${two(Math.round(seconds) % 60)} s`
    : `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

/** Money with two digits that say something; `?` stands for a price that is not known. */
export function money(usd, unpriced) {
  if (unpriced) return usd ? `≥ ${money(usd)}` : "?";
  if (!usd) return "$0";
  return `$${usd.toFixed(usd >= 0.995 ? 2 : Math.min(8, 1 - Math.floor(Math.log10(usd))))}`;
}

export function count(number, noun) {
  return `${(number || 0).toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

export function plain(number) {
  return (number || 0).toLocaleString("en");
}

/** A moment in seconds since the epoch, in the time zone of whoever looks. */
export function moment(seconds) {
  const date = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** A value as indented JSON; texts as they are. */
export function pretty(value) {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** JSON in a text indented; other texts as they are. */
export function prettyText(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}

/** The last part of a path. */
export function fileName(path) {
  return String(path || "").split(/[/\\]/).pop();
}
