// The real page in a real Chromium against real nodes: started by tests/page.rs, which
// tells in IDGEN_E2E where everything is. One operator's day, in order: each step leaves
// what the next one needs.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const given = JSON.parse(process.env.IDGEN_E2E);
const [first, second] = given.nodes;
const ADMIN = { name: 'alice', password: 'a long enough password' };
const EVIL = `<img src=x onerror="document.title='owned'">`;
const PATIENCE = 20_000;

let browser;
let context;
let page;
/** What the browser complained of: errors of scripts, and what the policy blocked. */
const complaints = [];

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
  context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-GB' });
  page = await openPage(context);
});

after(async () => {
  await browser?.close();
});

async function openPage(of) {
  const opened = await of.newPage();
  opened.setDefaultTimeout(PATIENCE);
  opened.on('pageerror', (error) => complaints.push(error.message));
  opened.on('console', (message) => {
    const text = message.text();
    // The browser reports each answer that is no success; the page shows those itself.
    if (message.type() === 'error' && !text.includes('Failed to load resource')) {
      complaints.push(text);
    }
  });
  return opened;
}

/** A request to the admin API past the page, with the admin token. */
async function api(method, path, body) {
  const answer = await fetch(`${first.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${given.token}`, 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
  return text === '' ? null : JSON.parse(text);
}

/** Waits until `holds` is true of what the API says. */
async function until(what, holds) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    if (await holds()) return;
    assert.ok(Date.now() < end, `waited for: ${what}`);
    await new Promise((go) => setTimeout(go, 100));
  }
}

const dialog = () => page.getByRole('dialog');
const button = (name, within = page) => within.getByRole('button', { name, exact: true });
const field = (name, within = page) => within.getByLabel(name, { exact: false }).first();

/** Picks an option by its text, of a native or of a drawn list. */
async function choose(label, option, within = page) {
  const control = within.getByLabel(label, { exact: true }).first();
  if ((await control.evaluate((element) => element.tagName)) === 'SELECT') {
    await control.selectOption({ label: option });
    return;
  }
  await control.click();
  await page.getByRole('option', { name: option, exact: true }).click();
}

async function go(path) {
  await page.goto(`${first.url}${path}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
}

/** Confirms a dialog that wants the name typed. */
async function confirm(name, submit) {
  await field(`Type ${name} to confirm`, dialog()).fill(name);
  await button(submit, dialog()).click();
  await dialog().waitFor({ state: 'detached' });
}

test('the set-up link makes the first account', async () => {
  await page.goto(given.setup);
  await field('User name').fill(ADMIN.name);
  await page.getByLabel('Password', { exact: true }).fill(ADMIN.password);
  await page.getByLabel('Password again').fill(ADMIN.password);
  await button('Create the account').click();
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  const access = await (await fetch(`${first.url}/api/v1/access`)).json();
  assert.equal(access.setup_needed, false, 'the link works once');
});

test('a wrong password is refused, and the right one lets in', async () => {
  await button('Log out').click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  await field('User name').fill(ADMIN.name);
  await page.getByLabel('Password', { exact: true }).fill('a wrong long password');
  await button('Log in').click();
  await page.getByRole('alert').first().waitFor();
  await page.getByLabel('Password', { exact: true }).fill(ADMIN.password);
  await button('Log in').click();
  await page.getByRole('navigation', { name: 'Main navigation' }).waitFor();
  const [cookie] = (await context.cookies()).filter((each) => each.name.includes('idgen_session'));
  assert.ok(cookie.httpOnly && cookie.sameSite === 'Strict', 'no script reads the cookie');
});

test('the first view comes fast and is small', async () => {
  const fresh = await browser.newContext({ locale: 'en-GB' });
  await fresh.addCookies(await context.cookies());
  const looker = await openPage(fresh);
  const session = await fresh.newCDPSession(looker);
  await session.send('Network.enable');
  let bytes = 0;
  session.on('Network.loadingFinished', (event) => {
    bytes += event.encodedDataLength;
  });
  await looker.goto(`${first.url}/`);
  await looker.getByText('Needs attention').first().waitFor();
  const kilobytes = bytes / 1024;
  console.log(`first view: ${kilobytes.toFixed(0)} KB over the wire`);
  assert.ok(kilobytes < 400, `${kilobytes} KB`);
  await fresh.close();
});

test('a type is added, with what is typed checked and a preview', async () => {
  await go('/types/new');
  await field('Name').fill('no good name!');
  await button('Create the type').click();
  await page.getByText('letters, digits or _ . : -').first().waitFor();
  await field('Name').fill('order');
  await field('Description').fill('Shop orders');
  await page.getByRole('heading', { name: 'First ids' }).waitFor();
  await page.getByRole('heading', { name: 'How ranges grow' }).waitFor();
  await button('Create the type').click();
  await page.getByRole('heading', { level: 1, name: /order/ }).waitFor();
  const made = await api('GET', '/types/order');
  assert.equal(made.description, 'Shop orders');
  assert.equal(made.mode, 'strict');
});

test('every mode can be added', async () => {
  for (const [mode, more] of [
    ['segment', async () => {}],
    ['sharded', async () => field('App id').fill('7')],
    ['snowflake', async () => {}],
  ]) {
    await go('/types/new');
    await page.getByText(mode, { exact: true }).first().click();
    await field('Name').fill(`a-${mode}`);
    await more();
    await button('Create the type').click();
    await page.getByRole('heading', { level: 1, name: new RegExp(`a-${mode}`) }).waitFor();
    assert.equal((await api('GET', `/types/a-${mode}`)).mode, mode);
  }
});

test('ids are taken by hand, and decoded', async () => {
  await go('/types/order');
  await button('Take ids').click();
  const issued = page.getByTestId('issued');
  await issued.waitFor();
  const ids = (await issued.innerText()).trim().split(/\s+/).map(BigInt);
  assert.equal(ids.length, 5);
  assert.ok(ids.every((id, n) => n === 0 || id === ids[n - 1] + 1n), `${ids}`);
  await field('Id, as a number or as text').fill(String(ids[2]));
  await button('Decode').click();
  await page.getByText('was issued').waitFor();
});

test('the page shows ids flow, without reload', async () => {
  await go('/types/order');
  await page.getByTestId('freshness').getByText('live').waitFor();
  const before = await page.locator('main').innerText();
  await api('POST', '/types/order/ids?count=500');
  await page.waitForFunction(
    (old) => document.querySelector('main').innerText !== old,
    before,
    { timeout: PATIENCE },
  );
  await go('/');
  // The load that tests/page.rs puts on the node.
  await page.waitForFunction(
    () => /Ids per second\s*[1-9]/.test(document.querySelector('main').innerText),
    undefined,
    { timeout: PATIENCE },
  );
});

test('two people change one type: the second is told, nothing is overwritten', async () => {
  await go('/types/order');
  await button('Change').click();
  await field('Description', dialog()).fill('Mine');
  const { version } = await api('GET', '/types/order');
  await api('PATCH', '/types/order', { version, description: 'Theirs', max_range: 7_000_000 });
  await button('Save', dialog()).click();
  await page.getByText('was changed by somebody else').first().waitFor();
  await page.getByText('Theirs').first().waitFor();
  assert.equal((await api('GET', '/types/order')).description, 'Theirs');
  await button('Put mine on top', dialog()).click();
  await button('Save', dialog()).click();
  await dialog().waitFor({ state: 'detached' });
  const now = await api('GET', '/types/order');
  assert.deepEqual([now.description, now.max_range], ['Mine', 7_000_000]);
});

test('a change through another node appears by itself', async () => {
  await go('/types/order');
  const { version } = await api('GET', '/types/order');
  const answer = await fetch(`${second.url}/api/v1/types/order`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${given.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ version, description: 'From the other node' }),
  });
  assert.equal(answer.status, 200);
  await page.getByText('From the other node').first().waitFor();
});

test('a block is reserved', async () => {
  await go('/types/order');
  await button('Reserve a block').click();
  await field('How many', dialog()).fill('5000');
  await button('Reserve a block', dialog()).click();
  await page.getByText('positions are yours').waitFor();
  await button('Close', dialog()).last().click();
});

test('an instance is tested before it is added', async () => {
  await go('/redis');
  await button('Add a Redis instance').click();
  await field('Name', dialog()).fill('spare');
  await dialog().getByLabel('URL', { exact: false }).first().fill('redis://127.0.0.1:1');
  await button('Test the connection', dialog()).click();
  await dialog().getByText('It does not answer').waitFor();
  assert.ok(await button('Add', dialog()).isDisabled(), 'not without a good test');
  await dialog().getByLabel('URL', { exact: false }).first().fill(given.redis[1]);
  await button('Test the connection', dialog()).click();
  await dialog().getByText('It answers').waitFor();
  await button('Add', dialog()).click();
  await dialog().waitFor({ state: 'detached' });
  await until('both nodes know it', async () => {
    const { items } = await api('GET', '/redis-instances');
    return items.some((each) => each.name === 'spare' && each.check.reachable);
  });
});

test('a type is moved with a dry run, and brought back', async () => {
  await go('/types/order');
  await button('Move').click();
  await dialog().getByText('dry run').waitFor();
  await button('Move it', dialog()).click();
  await dialog().getByText('Moved to spare').waitFor();
  await button('Close', dialog()).last().click();
  const moved = await api('GET', '/types/order');
  await button('Undo the move').click();
  await button('Undo the move', dialog()).click();
  await dialog().waitFor({ state: 'detached' });
  const back = await api('GET', '/types/order');
  assert.notEqual(moved.instance, back.instance);
  assert.equal(back.moving_to, null);
});

test('an instance is drained, and removed when it is empty', async () => {
  await api('POST', '/types/order/migration', { to: 'spare' });
  await go('/redis');
  const card = page.locator('#spare');
  await button('Drain', card).click();
  await button('Drain', dialog()).click();
  await dialog().waitFor({ state: 'detached' });
  await card.getByText('It is empty.').waitFor();
  await button('End the drain', card).click();
  await button('Drain', card).waitFor();
  await button('Remove', card).click();
  await confirm('spare', 'Remove');
  const { items } = await api('GET', '/redis-instances');
  assert.ok(items.every((each) => each.name !== 'spare'));
});

test('a type is retired and restored, by typing its name', async () => {
  await go('/types/order');
  await button('Retire').click();
  assert.ok(await button('Retire', dialog()).isDisabled(), 'not before its name is typed');
  await confirm('order', 'Retire');
  assert.equal((await api('GET', '/types/order')).state, 'retired');
  await button('Restore').click();
  await button('Restore', dialog()).waitFor();
  await confirm('order', 'Restore');
  assert.equal((await api('GET', '/types/order')).state, 'active');
});

test('types of another system are imported after a dry run', async () => {
  await go('/import');
  const table = 'biz_tag,max_id,step,description\nleaf-user,5000,100,users\nleaf-bill,700,50,bills\n';
  await page.getByLabel('Text', { exact: true }).last().fill(table);
  await button('Dry run').click();
  await page.getByText('Dry run, nothing was made.').waitFor();
  await button('Import 2 types').click();
  await dialog().getByRole('button', { name: 'Import 2 types' }).click();
  await page.getByText('Done.').waitFor();
  const user = await api('GET', '/types/leaf-user');
  assert.ok(user.first_id > 5_000, `${user.first_id}`);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByText('Export as JSON').click(),
  ]);
  const exported = JSON.parse(readFileSync(await download.path(), 'utf8'));
  assert.ok(JSON.stringify(exported).includes('leaf-bill'));
});

test('accounts, roles and tokens', async () => {
  await go('/access');
  await button('New account').click();
  await field('User name', dialog()).fill('victor');
  await dialog().getByLabel('Password', { exact: false }).first().fill('another long password');
  await choose('Role', 'view', dialog());
  await button('Create', dialog()).click();
  await dialog().waitFor({ state: 'detached' });

  await button('New token').click();
  await field('Name', dialog()).fill('ci');
  await button('Create', dialog()).click();
  const shown = await dialog().innerText();
  const [secret] = shown.match(/idg_[A-Za-z0-9_-]+/);
  const asToken = () =>
    fetch(`${second.url}/api/v1/types?limit=1`, { headers: { authorization: `Bearer ${secret}` } });
  assert.equal((await asToken()).status, 200);
  await button('I have it', dialog()).click();
  await page.getByRole('button', { name: /^Revoke/ }).first().click();
  await dialog().getByRole('button', { name: /^Revoke/ }).click();
  await dialog().waitFor({ state: 'detached' });
  await until('the other node refuses it', async () => (await asToken()).status === 401);

  const other = await browser.newContext({ locale: 'en-GB' });
  const viewer = await openPage(other);
  await viewer.goto(`${second.url}/types/order`);
  await viewer.getByLabel('User name').fill('victor');
  await viewer.getByLabel('Password', { exact: true }).fill('another long password');
  await viewer.getByRole('button', { name: 'Log in', exact: true }).click();
  await viewer.getByRole('heading', { level: 1, name: /order/ }).waitFor();
  const retire = viewer.getByRole('button', { name: 'Retire', exact: true });
  assert.ok((await retire.count()) === 0 || (await retire.isDisabled()), 'a viewer changes nothing');
  const csrf = await viewer.evaluate(async () => {
    const answer = await fetch('/api/v1/types/order/retire', { method: 'POST' });
    return answer.status;
  });
  assert.equal(csrf, 403);
  await other.close();
});

test('who changed what is in the audit log', async () => {
  await go('/audit');
  await page.getByText(ADMIN.name).first().waitFor();
  await page.getByText('retire type').first().waitFor();
});

test('names and descriptions of an attacker are harmless', async () => {
  const description = EVIL + 'x'.repeat(60_000);
  const made = await fetch(`${first.url}/api/v1/types`, {
    method: 'POST',
    headers: { authorization: `Bearer ${given.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: EVIL }),
  });
  assert.equal(made.status, 400, 'such a name is refused');
  // The limit of a description is below 64 KB: what it allows is shown, what not is told.
  const long = await fetch(`${first.url}/api/v1/types`, {
    method: 'POST',
    headers: { authorization: `Bearer ${given.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'evil', description }),
  });
  if (!long.ok) await api('POST', '/types', { name: 'evil', description: EVIL + 'x'.repeat(400) });
  for (const path of ['/types', '/types/evil', '/audit', '/', `/types/${encodeURIComponent(EVIL)}`]) {
    await page.goto(`${first.url}${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.waitForTimeout(300);
    assert.notEqual(await page.title(), 'owned', path);
    assert.equal(await page.locator('img[src=x]').count(), 0, path);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
    assert.ok(!wide, `${path} is wider than the window`);
  }
});

test('the policy forbids inline scripts', async () => {
  const answer = await fetch(`${first.url}/`, { headers: { accept: 'text/html' } });
  const policy = answer.headers.get('content-security-policy');
  assert.match(policy, /script-src 'self'(;|$)/);
  assert.match(policy, /default-src 'none'/);
});

test('every view is accessible, in both languages and schemes', async () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  const found = [];
  if (given.shots) mkdirSync(given.shots, { recursive: true });
  for (const [scheme, locale, width] of [
    ['light', 'en-GB', 1440],
    ['dark', 'zh-CN', 1440],
    ['light', 'zh-CN', 390],
    ['dark', 'en-GB', 390],
  ]) {
    const look = await browser.newContext({
      viewport: { width, height: width === 390 ? 844 : 900 },
      colorScheme: scheme,
      locale,
    });
    await look.addCookies(await context.cookies());
    const looker = await openPage(look);
    for (const [name, path] of Object.entries({
      overview: '/',
      types: '/types',
      type: '/types/order',
      new: '/types/new',
      redis: '/redis',
      audit: '/audit',
      access: '/access',
      import: '/import',
    })) {
      await looker.goto(`${first.url}${path}`);
      await looker.getByRole('heading', { level: 1 }).waitFor();
      await looker.waitForTimeout(2_500);
      if (given.shots) {
        const file = `${name}-${width}-${scheme}-${locale.slice(0, 2)}.png`;
        await looker.screenshot({ path: `${given.shots}/${file}` });
      }
      const violations = await looker.evaluate(async (source) => {
        // The policy blocks an added script element, not an evaluation from outside.
        if (!window.axe) new Function(source)();
        const result = await window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa'] });
        return result.violations.map((each) => `${each.id}: ${each.nodes[0].html.slice(0, 200)}`);
      }, axe);
      found.push(...violations.map((each) => `${name} ${scheme} ${locale} ${width}: ${each}`));
    }
    await look.close();
  }
  assert.deepEqual(found, []);
});

test('everything can be reached by keyboard', async () => {
  await go('/types');
  await page.keyboard.press('/');
  await page.keyboard.type('order');
  await page.getByRole('option').first().waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: /order/ }).waitFor();
});

test('a dead node is shown as silent, and a lost stream as old', async () => {
  await go('/');
  process.kill(second.pid, 'SIGKILL');
  await page.getByText(/silent for/).first().waitFor({ timeout: 30_000 });
  await page.getByText('Node is silent').first().waitFor();
  process.kill(first.pid, 'SIGSTOP');
  try {
    await page.getByTestId('freshness').getByText(/old/).first().waitFor({ timeout: 30_000 });
  } finally {
    process.kill(first.pid, 'SIGCONT');
  }
  await page.getByTestId('freshness').getByText('live').first().waitFor({ timeout: 60_000 });
});

test('the browser complained of nothing', () => {
  assert.deepEqual(complaints, []);
});
