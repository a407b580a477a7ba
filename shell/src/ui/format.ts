// Numbers and times as people read them.

export function size(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) {
    bytes /= 1000;
    unit += 1;
  }
  return `${unit === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)} ${units[unit]}`;
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

export function short(number: number): string {
  if (number < 1000) return String(number);
  return number < 1e6 ? `${(number / 1e3).toFixed(number < 1e4 ? 1 : 0)}k` : `${(number / 1e6).toFixed(1)}M`;
}

export function dollars(amount: number | null | undefined): string {
  if (amount === null || amount === undefined) return "–";
  return `$${amount < 0.1 && amount > 0 ? amount.toFixed(4) : amount.toFixed(2)}`;
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

/** `now`, `3 min ago`, `14:05`, `Tue 14:05`, `3 Mar`. */
export function ago(at: number, now: number = Date.now()): string {
  const seconds = Math.round((now - at) / 1000);
  if (seconds < 10) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  const date = new Date(at);
  const time = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (seconds < 20 * 3600) return time;
  if (seconds < 6 * 86_400) return `${date.toLocaleDateString("en", { weekday: "short" })} ${time}`;
  const year = date.getFullYear() === new Date(now).getFullYear() ? undefined : "numeric";
  return date.toLocaleDateString("en", { day: "numeric", month: "short", year });
}

export const exactly = (at: number): string => new Date(at).toLocaleString("en-GB");

export const baseName = (path: string): string => path.replace(/\/+$/, "").split("/").pop() || path;
/** Without `/workspace/` in front. */
export const inWorkspace = (path: string): string => path.replace(/^\/workspace\/?/, "") || "/";
