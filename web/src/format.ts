// Numbers as readers see them.

const whole = new Intl.NumberFormat('en-US', {maximumFractionDigits: 0});

export function count(value: number): string {
  return whole.format(value);
}

/** Three significant digits: 0.0123, 1.23, 12.3, 1,234. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return Math.abs(value) >= 100 ? whole.format(value) : String(Number(value.toPrecision(3)));
}

export function seconds(value: number): string {
  if (value < 1) return `${short(value * 1000)} ms`;
  return value < 120 ? `${short(value)} s` : `${whole.format(value / 60)} min`;
}

export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    ++unit;
  }
  return `${short(value)} ${units[unit]}`;
}

export function plural(number: number, word: string): string {
  return `${count(number)} ${word}${number === 1 ? '' : 's'}`;
}
