// The JSON schema of what a handler takes to a form, and the form to a payload.

import { html } from "../vendor/preact.js";

/** A schema with what it refers to put in, and how it is asked for: `{how, …}`. */
export function fieldOf(schema, defs = {}) {
  const known = resolve(schema || {}, defs);
  const choices = choicesOf(known, defs);
  if (choices) return { how: "choice", choices };
  if (known.anyOf || known.oneOf) {
    const parts = (known.anyOf || known.oneOf).map((part) => resolve(part, defs));
    const rest = parts.filter((part) => part.type !== "null");
    if (rest.length === 1 && rest.length < parts.length) return { ...fieldOf(rest[0], defs), isNullable: true };
    return { how: "json" };
  }
  switch (known.type) {
    case "string":
      return { how: "text" };
    case "number":
    case "integer":
      return { how: "number", isWhole: known.type === "integer" };
    case "boolean":
      return { how: "check" };
    case "object":
      return known.properties && Object.keys(known.properties).length ? objectOf(known, defs) : { how: "json" };
    case "array":
      return resolve(known.items || {}, defs).type === "string" ? { how: "lines" } : { how: "json" };
    default:
      return { how: "json" };
  }
}

function resolve(schema, defs) {
  const name = typeof schema.$ref === "string" ? schema.$ref.replace(/^#\/\$defs\//, "") : "";
  return name && Object.hasOwn(defs, name) ? defs[name] : schema;
}

function choicesOf(schema, defs) {
  if (Array.isArray(schema.enum)) return schema.enum;
  const parts = (schema.anyOf || []).map((part) => resolve(part, defs));
  return parts.length && parts.every((part) => "const" in part) ? parts.map((part) => part.const) : null;
}

function objectOf(schema, defs) {
  const required = new Set(schema.required || []);
  const fields = Object.entries(schema.properties).map(([name, part]) => ({ name, isRequired: required.has(name), about: resolve(part, defs).description || "", field: fieldOf(part, defs) }));
  return { how: "object", fields };
}

export function formOf(schema) {
  return fieldOf(schema, schema?.$defs || {});
}

/** What a form holds at first. */
export function emptyValue(field) {
  if (field.how === "object") return Object.fromEntries(field.fields.map((each) => [each.name, emptyValue(each.field)]));
  return field.how === "check" ? false : "";
}

/** What was entered as the payload. Throws an Error that names the field. */
export function payloadOf(field, value, name = "the payload", isRequired = true) {
  if (field.how === "object") {
    const given = field.fields.map((each) => [each.name, payloadOf(each.field, value[each.name], `\`${each.name}\``, each.isRequired)]);
    const made = Object.fromEntries(given.filter(([, part]) => part !== undefined));
    return !isRequired && Object.keys(made).length === 0 ? undefined : made;
  }
  if (field.how === "check") return value;
  if (value === "") {
    if (field.isNullable) return isRequired ? null : undefined;
    if (!isRequired || (field.how === "json" && name === "the payload")) return undefined;
    if (field.how === "text") return "";
    if (field.how === "lines") return [];
    throw new Error(`${name} is missing`);
  }
  if (field.how === "number") return numberOf(field, value, name);
  if (field.how === "choice") return field.choices.find((choice) => String(choice) === value);
  if (field.how === "lines") return value.split("\n").filter((line) => line !== "");
  if (field.how === "json") return jsonOf(value, name);
  return value;
}

function numberOf(field, value, name) {
  const number = Number(value);
  if (!Number.isFinite(number) || (field.isWhole && !Number.isInteger(number))) throw new Error(`${name} is no ${field.isWhole ? "whole " : ""}number`);
  return number;
}

function jsonOf(value, name) {
  try {
    return JSON.parse(value);
  } catch {
    throw new Error(`${name} is no JSON`);
  }
}

export function Field({ field, value, onChange, name, label, about, isRequired }) {
  const id = `field-${name}`;
  if (field.how === "object") {
    return html`<fieldset>${label && html`<legend>${label}</legend>`}${field.fields.map((each) => html`<${Field} key=${each.name} name=${`${name}.${each.name}`} label=${each.name}
      about=${each.about} isRequired=${each.isRequired} field=${each.field} value=${value[each.name]} onChange=${(part) => onChange({ ...value, [each.name]: part })} />`)}</fieldset>`;
  }
  const take = (event) => onChange(event.target.value);
  const input = {
    text: () => html`<textarea id=${id} rows="2" value=${value} onInput=${take}></textarea>`,
    number: () => html`<input id=${id} inputmode="decimal" value=${value} onInput=${take} />`,
    check: () => html`<input id=${id} type="checkbox" checked=${value} onChange=${(event) => onChange(event.target.checked)} />`,
    choice: () => html`<select id=${id} value=${value} onChange=${take}><option value="">choose</option>${field.choices.map((choice) => html`<option value=${String(choice)}>${String(choice)}</option>`)}</select>`,
    lines: () => html`<textarea id=${id} rows="3" placeholder="one a line" value=${value} onInput=${take}></textarea>`,
    json: () => html`<textarea id=${id} rows="3" class="mono" placeholder="JSON" value=${value} onInput=${take}></textarea>`,
  }[field.how]();
  return html`<div class="entry-field"><label for=${id}>${label || "value"}${isRequired ? "" : html` <span class="muted">optional</span>`}</label>${input}${about && html`<span class="muted">${about}</span>`}</div>`;
}
