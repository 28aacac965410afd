/** A whole number with its unit, such as `"500ms"`, `"60s"`, `"5m"`, `"1h"` or `"1d"`. */
export type Duration = `${number}${"ms" | "s" | "m" | "h" | "d"}`;

/** At most `limit` units in any `window`. */
export type Tier = readonly [limit: number, window: Duration];

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Checks a duration, so that a bare number is never taken for seconds by one and milliseconds by another. */
export function milliseconds(name: string, value: Duration): number {
  const parts = typeof value === "string" ? /^(\d+)(ms|s|m|h|d)$/.exec(value) : null;
  if (!parts) {
    throw new TypeError(
      `${name} must be a whole number with a unit, such as "60s", got ${JSON.stringify(value)}`,
    );
  }
  return Number(parts[1]) * UNITS[parts[2]!]!;
}

export function duration(name: string, value: Duration): string {
  milliseconds(name, value);
  return value;
}

/** A number of units as the server reads it. */
export function count(name: string, value: number): string {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new TypeError(
      `${name} must be an integer from 0 to ${Number.MAX_SAFE_INTEGER}, got ${String(value)}`,
    );
  }
  return String(value);
}

/** Checks that an object has no other fields, so that a misspelt one, or a bare number, is not passed over in silence. */
export function onlyFields(name: string, given: object, fields: readonly string[]): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new TypeError(
      `${name} must be an object such as { ${fields[0]}: … }, got ${JSON.stringify(given)}`,
    );
  }
  const unknown = Object.keys(given).find((field) => !fields.includes(field));
  if (unknown !== undefined) {
    throw new TypeError(
      `${name} must have no fields but ${fields.join(", ")}, got ${JSON.stringify(unknown)}`,
    );
  }
}

export function text(name: string, value: string): string {
  if (typeof value !== "string" || value === "") {
    throw new TypeError(`${name} must be a string that is not empty, got ${JSON.stringify(value)}`);
  }
  return value;
}
