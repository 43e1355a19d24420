// Buckets of time as the server names them: a day 2026-11-15, a week 2026-W46, a month 2026-11.

const DAY_MS = 86_400_000;

export function unitOf(bucket) {
  return bucket.includes("W") ? "week" : bucket.length === 7 ? "month" : "day";
}

function utc(year, month, day) {
  return new Date(Date.UTC(year, month, day));
}

// Its first day.
function first(bucket) {
  const unit = unitOf(bucket);
  const [year, rest, day = "1"] = bucket.split("-");
  if (unit !== "week") return utc(Number(year), Number(rest) - 1, Number(day));
  const fourth = utc(Number(year), 0, 4); // of January, always in the first week
  const monday = fourth.getTime() - ((fourth.getUTCDay() + 6) % 7) * DAY_MS;
  return new Date(monday + (Number(rest.slice(1)) - 1) * 7 * DAY_MS);
}

export function bucketOf(date, unit) {
  const text = date.toISOString();
  if (unit === "month") return text.slice(0, 7);
  if (unit === "day") return text.slice(0, 10);
  const thursday = new Date(date.getTime() + (3 - ((date.getUTCDay() + 6) % 7)) * DAY_MS);
  const start = Date.UTC(thursday.getUTCFullYear(), 0, 1);
  const week = Math.floor((thursday.getTime() - start) / (7 * DAY_MS)) + 1;
  return `${thursday.getUTCFullYear()}-W${String(week).padStart(2, "0")}`;
}

export function following(bucket) {
  const unit = unitOf(bucket);
  const start = first(bucket);
  if (unit === "month") return bucketOf(utc(start.getUTCFullYear(), start.getUTCMonth() + 1, 1), unit);
  return bucketOf(new Date(start.getTime() + (unit === "week" ? 7 : 1) * DAY_MS), unit);
}

// The days 2026-11-09 at which it begins and, not included, ends: what `since` and `until` take.
export function startOf(bucket) {
  return first(bucket).toISOString().slice(0, 10);
}

export function endOf(bucket) {
  return startOf(following(bucket));
}

// All buckets from one to another, at most so many of the latest.
export function between(from, to, most = 2_000) {
  const all = [];
  for (let each = from; each <= to && all.length < 100_000; each = following(each)) all.push(each);
  return all.slice(-most);
}

const FORMATS = {
  month: new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric", timeZone: "UTC" }),
  week: new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" }),
  day: new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" }),
};

export function named(bucket) {
  const unit = unitOf(bucket);
  return (unit === "week" ? "week of " : "") + FORMATS[unit].format(first(bucket));
}
