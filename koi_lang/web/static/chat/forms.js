// Forms: a JSON Schema of plain fields as what the page shows of each, and values to the answers that they are given by. Pure.

/** What may be chosen in a field: `[{value, title}]`; empty where anything may be written. */
export function optionsOf(about) {
  const items = about.type === "array" && about.items && typeof about.items === "object" ? about.items : about;
  const known = [items.oneOf, items.anyOf].find(Array.isArray)?.filter((each) => each && "const" in each);
  if (known?.length) return known.map((each) => ({ value: String(each.const), title: String(each.title || each.const) }));
  return (Array.isArray(items.enum) ? items.enum : []).map((value, at) => ({ value: String(value), title: String(items.enumNames?.[at] ?? value) }));
}

const INPUTS = { email: "email", date: "date", time: "time", uri: "url" };

/** The fields of a form: `{name, title, hint, kind, options, isRequired, initial}` with bounds as attributes of an input. */
export function fieldsOf({ properties = {}, required = [] } = {}) {
  return Object.entries(properties).map(([name, given]) => {
    const about = given && typeof given === "object" ? given : {}, options = optionsOf(about), isMany = about.type === "array";
    const kind = isMany && options.length ? "several" : options.length ? (options.length > 4 ? "select" : "choice") : about.type === "boolean" ? "boolean"
      : about.type === "integer" || about.type === "number" ? "number" : INPUTS[about.format] || (about.maxLength > 200 ? "long" : "text");
    const bounds = kind === "number" ? { min: about.minimum, max: about.maximum, step: about.type === "integer" ? 1 : "any" } : { minlength: about.minLength, maxlength: about.maxLength };
    const words = String(about.title || name).replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/_+/g, " ");
    const initial = isMany ? (Array.isArray(about.default) ? about.default.map(String) : []) : kind === "boolean" ? about.default === true : about.default === undefined ? "" : String(about.default);
    return { name, title: words.charAt(0).toUpperCase() + words.slice(1), hint: String(about.description || ""), kind, options, isRequired: required.includes(name), initial, bounds, pattern: about.pattern };
  });
}

const isEmpty = (value) => value === "" || value === undefined || (Array.isArray(value) && !value.length);

/** Why a value does not fit its field, for people; empty where it does. `native` is what the browser says of it. */
export function problemOf({ isRequired, kind, pattern }, value, native = "") {
  if (native) return native;
  if (isRequired && isEmpty(value)) return kind === "choice" || kind === "select" || kind === "several" ? "Choose one." : "Fill this in.";
  if (isEmpty(value) || !pattern || typeof value !== "string") return "";
  try {
    return new RegExp(pattern, "u").test(value) ? "" : "This has not the form that is asked for.";
  } catch {
    return "";
  }
}

/** A value as the answer to the question about its field. */
export const asAnswer = (value) => (typeof value === "boolean" ? (value ? "yes" : "no") : Array.isArray(value) ? value.join(", ") : String(value ?? "").trim());
