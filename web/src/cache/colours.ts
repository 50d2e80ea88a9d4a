// Colours of owners and kinds, from the style sheet, so that they follow the theme.
import type {Block, CacheState} from './state';

/** Okabe and Ito's palette without its black and grey, which readers who see fewer colours can tell apart. */
export const kOwners = 7;

let cached: Record<string, string> = {};

export function colour(name: string): string {
  return cached[name] ??= getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Call after the theme has changed. */
export function forgetColours(): void {
  cached = {};
}

export function ownerColour(sequence: number): string {
  return colour(`owner-${sequence % kOwners}`);
}

export function blockColour(state: CacheState, block: Block): string {
  const kind = state.kindOf(block);
  return kind === 'sequence' ? ownerColour(block.sequences[0]!) : colour(kind);
}
