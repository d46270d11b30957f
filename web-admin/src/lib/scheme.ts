/** The colour scheme: as the system has it, or as chosen. */
export const SCHEMES = ['auto', 'light', 'dark'] as const;
export type Scheme = (typeof SCHEMES)[number];

const STORED = 'idgen.scheme';

export function storedScheme(): Scheme {
  const stored = localStorage.getItem(STORED);
  return SCHEMES.find((scheme) => scheme === stored) ?? 'auto';
}

export function applyScheme(scheme: Scheme): void {
  localStorage.setItem(STORED, scheme);
  if (scheme === 'auto') delete document.documentElement.dataset.scheme;
  else document.documentElement.dataset.scheme = scheme;
  // Charts draw with colours that they read once.
  window.dispatchEvent(new Event('schemechange'));
}
