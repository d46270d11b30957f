// `npm run look`: takes a picture of each view in both schemes, languages and widths
// into shots/, and fails on what axe-core finds or the content security policy blocks.
// Needs a build before it, and a chromium.
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';
import { start } from './fake.mjs';

const only = process.argv[2];
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const shots = new URL('../shots/', import.meta.url).pathname;
mkdirSync(shots, { recursive: true });

const VIEWS = {
  overview: '/',
  types: '/types',
  type: '/types/order',
  new: '/types/new',
  redis: '/redis',
  audit: '/audit',
  access: '/access',
  import: '/import',
};
const LOOKS = [
  { tag: 'wide-light-en', width: 1440, height: 900, scheme: 'light', language: 'en' },
  { tag: 'wide-dark-zh', width: 1440, height: 900, scheme: 'dark', language: 'zh' },
  { tag: 'phone-light-zh', width: 390, height: 844, scheme: 'light', language: 'zh' },
  { tag: 'phone-dark-en', width: 390, height: 844, scheme: 'dark', language: 'en' },
];

const fake = await start();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
let bad = 0;
const complain = (where, what) => {
  bad += 1;
  console.error(`${where}: ${what}`);
};

async function lookAt(page, where) {
  // Two frames of the stream and the charts.
  await page.waitForTimeout(600);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
  if (wide) complain(where, 'is wider than the window');
  await page.screenshot({ path: `${shots}${where}.png` });
  // The policy would block an added script element, but not the evaluation of one.
  const found = await page.evaluate(async (source) => {
    if (!window.axe) new Function(source)();
    const { violations } = await window.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'],
    });
    return violations.map(
      (v) =>
        `${v.id} (${v.impact}): ${v.nodes
          .slice(0, 3)
          .map((n) => `${n.html.slice(0, 160)} ${n.any[0]?.message ?? ''}`)
          .join(' | ')}`,
    );
  }, axe);
  for (const each of found) complain(where, each);
}

for (const look of LOOKS) {
  if (only && !look.tag.includes(only) && !process.argv[3]) continue;
  const context = await browser.newContext({
    viewport: { width: look.width, height: look.height },
    colorScheme: look.scheme,
    locale: look.language === 'zh' ? 'zh-CN' : 'en-GB',
    bypassCSP: false,
  });
  const page = await context.newPage();
  page.on('pageerror', (error) => complain(look.tag, `error: ${error.message}`));
  page.on('console', (message) => {
    const text = message.text();
    if (message.type() === 'error' && !/status of 401/.test(text)) complain(look.tag, text);
  });
  // The tests may evaluate; the page itself never does.
  const session = await context.newCDPSession(page);
  await session.send('Page.enable');
  await page.goto(`${fake.url}/login`);
  await page.locator('input').first().waitFor();
  await page.screenshot({ path: `${shots}login-${look.tag}.png` });
  await page.locator('input[autocomplete=username]').fill('alice');
  await page.locator('input[type=password]').fill('correct horse battery');
  await page.locator('button[type=submit]').click();
  await page.locator('nav').first().waitFor({ state: 'attached' });
  for (const [name, path] of Object.entries(VIEWS)) {
    if (process.argv[3] && process.argv[3] !== name) continue;
    await page.goto(`${fake.url}${path}`);
    await page.locator('h1').waitFor();
    await lookAt(page, `${name}-${look.tag}`);
  }
  if ((await page.title()) === 'owned') complain(look.tag, 'a description was run as a script');
  await context.close();
}
await browser.close();
fake.close();
console.log(bad === 0 ? 'nothing found' : `${bad} found`);
process.exit(bad === 0 ? 0 : 1);
