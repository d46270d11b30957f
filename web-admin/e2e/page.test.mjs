// The real page in a real Chromium against real nodes: started by tests/page.rs, which
// tells in IDGEN_E2E where everything is. One operator's day, in order: each step leaves
// what the next one needs, so that after a failure the rest is skipped.
//
// Everything is found by its role and its name, as a reader of the screen finds it.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const given = JSON.parse(process.env.IDGEN_E2E);
const [first, second] = given.nodes;
const ADMIN = { name: 'alice', password: 'a long enough password' };
const VIEWER = { name: 'victor', password: 'another long password' };
const EVIL = `<img src=x onerror="document.title='owned'">`;
const PATIENCE = 15_000;
const FIRST_VIEW_KB = 400;

let browser;
let context;
let page;
let failed = false;
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

/** A test that runs if those before it passed, and tells what the page showed if it fails. */
function step(name, run) {
  test(name, async (t) => {
    if (failed) return t.skip('an earlier step failed');
    try {
      await run();
    } catch (error) {
      failed = true;
      const shown = await page.locator('body').innerText();
      console.log(`${name}: failed at ${page.url()}, which shows:\n${shown.slice(0, 3_000)}`);
      console.log(`The browser complained of: ${complaints.join('\n') || 'nothing'}`);
      throw error;
    }
  });
}

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

/** A request to the admin API past the page, with a token. */
function ask(node, method, path, body, token = given.token) {
  return fetch(`${node.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
}

/** The same through the first node; it must succeed. */
async function api(method, path, body, node = first) {
  const answer = await ask(node, method, path, body);
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

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
const dialog = () => page.getByRole('dialog');
const button = (name, within = page) => within.getByRole('button', { name, exact: true });
const heading = (name, within = page) => within.getByRole('heading', { level: 1, name });
const status = (text, within = page) => within.getByRole('status').filter({ hasText: text });
/** An input by its label, which may have a star behind it. */
const field = (name, within = page) =>
  within.getByLabel(new RegExp(`^${escaped(name)}( ?\\*)?$`)).first();
const closed = () => dialog().waitFor({ state: 'detached' });

/** Picks an option by its text, of a native or of a drawn list. */
async function choose(label, option, within = page) {
  const control = field(label, within);
  if ((await control.evaluate((element) => element.tagName)) === 'SELECT') {
    await control.selectOption({ label: option });
    return;
  }
  await control.click();
  await page.getByRole('option', { name: option, exact: true }).click();
}

/** Picks one of a few that stand side by side, by keyboard. */
async function pick(name) {
  await page.getByRole('radio', { name, exact: true }).focus();
  await page.keyboard.press('Space');
}

async function go(path, of = page) {
  await of.goto(`${first.url}${path}`);
  await heading(/./, of).waitFor();
}

async function logIn(of, { name, password }) {
  await field('User name', of).fill(name);
  await field('Password', of).fill(password);
  await button('Log in', of).click();
}

/** Confirms a dialog that wants `name` typed, and does nothing before it is. */
async function confirm(name, submit) {
  await dialog().waitFor();
  assert.ok(await button(submit, dialog()).isDisabled(), 'not before the name is typed');
  await field(`Type ${name} to confirm`, dialog()).fill(`${name}x`);
  assert.ok(await button(submit, dialog()).isDisabled(), 'not with another name');
  await field(`Type ${name} to confirm`, dialog()).fill(name);
  await button(submit, dialog()).click();
  await closed();
}

step('the set-up link makes the first account', async () => {
  await page.goto(given.setup);
  await field('User name').fill(ADMIN.name);
  await field('Password').fill(ADMIN.password);
  await field('Password again').fill(ADMIN.password);
  assert.equal(await page.evaluate(() => location.hash), '', 'the token left the address');
  await button('Create the account').click();
  await heading('Overview').waitFor();
  const token = given.setup.split('#')[1];
  const again = await fetch(`${first.url}/api/v1/setup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token, name: 'mallory', password: ADMIN.password }),
  });
  assert.equal(again.status, 403, 'the link works once');
});

step('a wrong password is refused, and the right one lets in', async () => {
  await button('Log out').click();
  await heading('Log in').waitFor();
  await logIn(page, { ...ADMIN, password: 'a wrong long password' });
  await page.getByRole('alert').first().waitFor();
  // Where one wanted to go is where one comes to.
  await page.goto(`${first.url}/audit`);
  await logIn(page, ADMIN);
  await heading('Audit log').waitFor();
  const [cookie] = (await context.cookies()).filter((each) => each.name.includes('idgen_session'));
  assert.ok(cookie.httpOnly && cookie.sameSite === 'Strict', 'no script reads the cookie');
});

step('the first view comes fast and is small', async () => {
  const fresh = await browser.newContext({ locale: 'en-GB' });
  await fresh.addCookies(await context.cookies());
  const looker = await openPage(fresh);
  const session = await fresh.newCDPSession(looker);
  await session.send('Network.enable');
  let bytes = 0;
  session.on('Network.dataReceived', (event) => {
    bytes += event.encodedDataLength;
  });
  const began = Date.now();
  await looker.goto(`${first.url}/`);
  await looker.getByRole('heading', { name: 'Needs attention' }).waitFor();
  const ms = Date.now() - began;
  await settled(looker, '/');
  const kilobytes = bytes / 1024;
  console.log(`first view: ${kilobytes.toFixed(0)} KB over the wire, shown after ${ms} ms`);
  assert.ok(kilobytes > 50, 'something was counted');
  assert.ok(kilobytes < FIRST_VIEW_KB, `${kilobytes} KB`);
  await fresh.close();
});

step('a type is added, with what is typed checked and a preview', async () => {
  await go('/types/new');
  await field('Name').fill('no good name!');
  await button('Create the type').click();
  await page.getByText('1 to 128 letters, digits or _ . : -').waitFor();
  await field('Name').fill('order');
  await field('Description').fill('Shop orders');
  await field('Shortest range').fill('0');
  await page.getByText('From 1 to 1000000000000.').waitFor();
  await field('Shortest range').fill('2000');
  await field('First id').fill('5001');
  await page.getByRole('heading', { name: 'First ids' }).waitFor();
  await page.getByRole('heading', { name: 'How ranges grow' }).waitFor();
  await page.getByText('5005', { exact: true }).waitFor();
  assert.equal((await ask(first, 'GET', '/types/order')).status, 404, 'a preview makes nothing');
  await button('Create the type').click();
  await heading(/order/).waitFor();
  const made = await api('GET', '/types/order');
  assert.deepEqual([made.description, made.mode, made.first_id], ['Shop orders', 'strict', 5001]);
});

step('every mode can be added', async () => {
  for (const mode of ['segment', 'sharded', 'snowflake']) {
    await go('/types/new');
    await pick(mode);
    await field('Name').fill(`a-${mode}`);
    if (mode === 'sharded') {
      await button('Create the type').click();
      await page.getByText('This is needed.').waitFor();
      await field('App id').fill('7');
    }
    await page.getByRole('heading', { name: 'First ids' }).waitFor();
    await button('Create the type').click();
    await heading(new RegExp(`a-${mode}`)).waitFor();
    assert.equal((await api('GET', `/types/a-${mode}`)).mode, mode);
  }
});

step('a name that is taken is refused by the node, in its words', async () => {
  await go('/types/new');
  await field('Name').fill('order');
  await button('Create the type').click();
  await page.getByText('ALREADY_EXISTS').first().waitFor();
});

step('ids are taken by hand, and decoded', async () => {
  await go('/types/order');
  await button('Take ids').click();
  const issued = status(/^\d{20}$/);
  await issued.waitFor();
  const ids = (await issued.innerText()).trim().split(/\s+/).map(BigInt);
  assert.ok(
    ids.every((id, n) => n === 0 || id === ids[n - 1] + 1n),
    `${ids}`,
  );
  await field('Id, as a number or as text').fill(String(ids[2]));
  await button('Decode').click();
  await page.getByText('was issued', { exact: true }).waitFor();
  await field('Id, as a number or as text').fill('999999999');
  await button('Decode').click();
  await page.getByText('not issued yet', { exact: true }).waitFor();
});

step('the page shows ids flow, without reload', async () => {
  await go('/types/order');
  await status(/^live$/).waitFor();
  const { ids } = await api('POST', '/types/order/ids?count=500');
  await page
    .getByText(String(ids.at(-1) + 1), { exact: true })
    .first()
    .waitFor();
  await go('/');
  // The load that tests/page.rs puts on the node.
  await page.getByRole('img', { name: /^Ids per second, last hour: last [1-9]/ }).waitFor();
});

step('two people change one type: the second is told, nothing is overwritten', async () => {
  await go('/types/order');
  await button('Change').click();
  await field('Description', dialog()).fill('Mine');
  const { version } = await api('GET', '/types/order');
  await api('PATCH', '/types/order', { version, description: 'Theirs', max_range: 7_000_000 });
  await button('Save', dialog()).click();
  await page.getByText('order was changed by somebody else').waitFor();
  await dialog()
    .getByRole('row', { name: /description.*both changed it Shop orders Theirs Mine/ })
    .waitFor();
  assert.equal((await api('GET', '/types/order')).description, 'Theirs');
  await button('Put mine on top', dialog()).click();
  await button('Save', dialog()).click();
  await closed();
  const now = await api('GET', '/types/order');
  assert.deepEqual([now.description, now.max_range], ['Mine', 7_000_000]);
});

step('a change through another node appears by itself', async () => {
  await go('/types/order');
  const { version } = await api('GET', '/types/order');
  await api('PATCH', '/types/order', { version, description: 'From the other node' }, second);
  await page.getByText('From the other node').first().waitFor();
});

step('a block is reserved, and given to nobody else', async () => {
  await go('/types/order');
  await button('Reserve a block').click();
  await field('How many', dialog()).fill('5000');
  await button('Reserve a block', dialog()).click();
  await status(/ids are yours/, dialog()).waitFor();
  const [, start, last] = /(\d+) … (\d+)/.exec(await dialog().innerText());
  assert.equal(BigInt(last) - BigInt(start), 4_999n);
  await button('Close', dialog()).last().click();
  const { ids } = await api('POST', '/types/order/ids?count=5000');
  assert.ok(ids.every((id) => id < Number(start) || id > Number(last)));
});

step('the key of opaque ids is changed', async () => {
  const options = { opaque: { slices: 4 } };
  await api('POST', '/types', { name: 'ticket', mode: 'strict', options });
  await go('/types/ticket');
  await button('Rotate key').click();
  await confirm('ticket', 'Rotate key');
  await page.getByText('ticket has a new key.').waitFor();
});

step('an instance is tested before it is added', async () => {
  await go('/redis');
  await button('Add a Redis instance').click();
  await field('Name', dialog()).fill('spare');
  await field('URL', dialog()).fill('redis://127.0.0.1:1');
  await button('Test the connection', dialog()).click();
  await dialog().getByText('It does not answer').waitFor();
  assert.ok(await button('Add', dialog()).isDisabled(), 'not without a good test');
  await field('URL', dialog()).fill(given.redis[1]);
  await button('Test the connection', dialog()).click();
  await dialog().getByText('It answers').waitFor();
  await button('Add', dialog()).click();
  await closed();
  for (const node of [first, second]) {
    await until('both nodes know it', async () => {
      const { items } = await api('GET', '/redis-instances', undefined, node);
      return items.some((each) => each.name === 'spare' && each.check?.reachable);
    });
  }
});

step('a type is moved with a dry run, and brought back', async () => {
  const old = await api('GET', '/types/order');
  await go('/types/order');
  await button('Move').click();
  await dialog().getByText('What it would do (dry run)').waitFor();
  assert.equal((await api('GET', '/types/order')).instance, old.instance);
  await button('Move it', dialog()).click();
  await dialog().getByText('Moved to spare').waitFor();
  await button('Close', dialog()).last().click();
  const moved = await api('GET', '/types/order');
  assert.notEqual(moved.instance, old.instance);
  await button('Undo the move').click();
  await button('Undo the move', dialog()).click();
  await closed();
  const back = await api('GET', '/types/order');
  assert.deepEqual([back.instance, back.moving_to], [old.instance, null]);
});

step('an instance is drained, and removed when it is empty', async () => {
  await api('POST', '/types/order/migration', { to: 'spare' });
  await go('/redis');
  const card = page.getByRole('region', { name: /^spare/ });
  await card.getByRole('link', { name: '1', exact: true }).waitFor();
  assert.ok(await button('Remove', card).isDisabled(), 'not while a type is there');
  await button('Drain', card).click();
  await button('Drain', dialog()).click();
  await closed();
  await card.getByText('It is empty.').waitFor();
  await button('End the drain', card).click();
  await button('Drain', card).waitFor();
  await button('Remove', card).click();
  await confirm('spare', 'Remove');
  await card.waitFor({ state: 'detached' });
  const { items } = await api('GET', '/redis-instances');
  assert.ok(items.every((each) => each.name !== 'spare'));
});

step('a type is retired and restored, by typing its name', async () => {
  await go('/types/order');
  await button('Retire').click();
  await confirm('order', 'Retire');
  assert.equal((await api('GET', '/types/order')).state, 'retired');
  assert.equal((await ask(first, 'POST', '/types/order/ids')).ok, false, 'no ids of it');
  await button('Restore').click();
  await confirm('order', 'Restore');
  assert.equal((await api('GET', '/types/order')).state, 'active');
});

step('types of another system are imported after a dry run, and exported', async () => {
  await go('/import');
  const table =
    'biz_tag,max_id,step,description\n' +
    `leaf-user,5000,100,users\nleaf-bill,700,50,bills\n"${EVIL.replaceAll('"', '""')}",1,1,x\n`;
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill(table);
  await button('Dry run').click();
  await page.getByText('Dry run, nothing was made.').waitFor();
  await page.getByRole('row', { name: /img src=x.* failed/ }).waitFor();
  await harmless('the dry run');
  assert.equal((await ask(first, 'GET', '/types/leaf-user')).status, 404);
  await button('Import 2 types').click();
  await button('Import 2 types', dialog()).click();
  await page.getByText('Done.').waitFor();
  // Leaf keeps the end of what it gave away: 5000 itself is free.
  assert.equal((await api('GET', '/types/leaf-user')).first_id, 5_000);
  const exported = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Export as JSON' }).click(),
  ]);
  const text = readFileSync(await exported[0].path(), 'utf8');
  assert.ok(JSON.stringify(JSON.parse(text)).includes('leaf-bill'));
  // What was exported is taken again: all of it is there already.
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill(text);
  await button('Dry run').click();
  await status(/New: 0\. There already: [1-9]\d*\. Failed: 0\./).waitFor();
});

step('accounts, roles and sessions', async () => {
  await go('/access');
  await button('New account').click();
  await field('Name', dialog()).fill(VIEWER.name);
  await field('Password', dialog()).fill('short');
  await button('Create', dialog()).click();
  await dialog().getByText('INVALID_ARGUMENT').waitFor();
  await field('Password', dialog()).fill(VIEWER.password);
  await choose('Role', 'view', dialog());
  await button('Create', dialog()).click();
  await closed();

  // A viewer, through the other node.
  const other = await browser.newContext({ locale: 'en-GB' });
  const viewer = await openPage(other);
  await viewer.goto(`${second.url}/types/order`);
  await logIn(viewer, VIEWER);
  await heading(/order/, viewer).waitFor();
  for (const name of ['Change', 'Retire', 'Take ids']) {
    assert.ok(await button(name, viewer).isDisabled(), `a viewer cannot ${name}`);
  }
  const attempt = (with_token) =>
    viewer.evaluate(async (with_token) => {
      const { csrf } = await (await fetch('/api/v1/session')).json();
      const headers = with_token ? { 'X-Idgen-Csrf': csrf } : {};
      const answer = await fetch('/api/v1/types/order/retire', { method: 'POST', headers });
      return [answer.status, (await answer.json()).detail];
    }, with_token);
  const [code, detail] = await attempt(true);
  assert.equal(code, 403);
  assert.match(detail, /operate/, 'it names the role that is needed');

  // More rights: at the next look.
  await button(`Change the account ${VIEWER.name}`).click();
  await choose('Role', 'operate', dialog());
  await button('Save', dialog()).click();
  await closed();
  await until('the other node knows of it', async () => {
    const answer = await viewer.evaluate(async () => (await fetch('/api/v1/session')).json());
    return answer.account?.role === 'operate';
  });
  const [forged, why] = await attempt(false);
  assert.equal(forged, 403, 'not without the token against forged requests');
  assert.match(why, /csrf/i);
  await viewer.reload();
  await button('Change', viewer).click();
  const typed = field('Description', viewer.getByRole('dialog'));
  await typed.fill('typed before the session ended');

  // His session is ended: he is asked to log in above what he did, which stays. He is
  // asked when he saves, or before that if the page asked for something by itself.
  const end = button(`End this session of ${VIEWER.name}`);
  await end.click();
  await end.waitFor({ state: 'detached' });
  const isOut = () => viewer.evaluate(async () => (await fetch('/api/v1/session')).status === 401);
  await until('the other node knows of it', isOut);
  const again = viewer.getByRole('dialog', { name: 'Log in again' });
  const save = button('Save', viewer.getByRole('dialog'));
  await Promise.allSettled([again.waitFor(), save.click({ timeout: 5_000 })]);
  await again.waitFor();
  await field('Password', again).fill(VIEWER.password);
  await button('Log in', again).click();
  await again.waitFor({ state: 'detached' });
  assert.equal(await typed.inputValue(), 'typed before the session ended');

  await button(`Remove the account ${VIEWER.name}`).click();
  await confirm(VIEWER.name, 'Remove');
  await until('he is out', isOut);
  await other.close();

  // The last administrator stays.
  await button(`Remove the account ${ADMIN.name}`).click();
  await field(`Type ${ADMIN.name} to confirm`, dialog()).fill(ADMIN.name);
  await button('Remove', dialog()).click();
  await dialog().getByRole('alert').waitFor();
  await button('Cancel', dialog()).click();
});

step('tokens for programs', async () => {
  await go('/access');
  await button('New token').click();
  await field('Name', dialog()).fill('ci');
  await choose('Role', 'view', dialog());
  await button('Create', dialog()).click();
  await button('I have it', dialog()).waitFor();
  const [secret] = /idg_[A-Za-z0-9_-]+/.exec(await dialog().innerText());
  const used = async () => (await ask(second, 'GET', '/types?limit=1', undefined, secret)).status;
  assert.equal(await used(), 200);
  await button('I have it', dialog()).click();
  await closed();
  assert.ok(!(await page.content()).includes(secret), 'the secret is shown once');
  await button('Revoke the token ci').click();
  await dialog()
    .getByRole('button', { name: /^Revoke/ })
    .click();
  await closed();
  await until('the other node refuses it', async () => (await used()) === 401);
});

step('the own password is changed', async () => {
  await go('/access');
  await button('Change my password').click();
  await field('Present password', dialog()).fill(ADMIN.password);
  ADMIN.password = 'a newer long password';
  await field('New password', dialog()).fill(ADMIN.password);
  await field('Password again', dialog()).fill(ADMIN.password);
  await dialog()
    .getByRole('button', { name: /^(Save|Change)/ })
    .click();
  await closed();
  await go('/');
  await button('Log out').click();
  await heading('Log in').waitFor();
  await logIn(page, ADMIN);
  await heading('Overview').waitFor();
});

step('who changed what is in the audit log', async () => {
  await go('/audit');
  for (const [action, subject] of [
    ['create type', 'order'],
    ['retire type', 'order'],
    ['restore type', 'order'],
    ['reserve a block', 'order'],
    ['rotate key', 'ticket'],
    ['remove instance', 'spare'],
    ['add account', VIEWER.name],
    ['revoke token', 'ci'],
  ]) {
    const row = new RegExp(`${ADMIN.name} ${action} ${subject}`);
    await page.getByRole('row', { name: row }).first().waitFor();
  }
});

/** Nothing of an attacker has run, and nothing is pushed out of the window. */
async function harmless(where) {
  assert.notEqual(await page.title(), 'owned', where);
  assert.equal(await page.locator('img[src=x]').count(), 0, where);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
  assert.ok(!wide, `${where} is wider than the window`);
}

step('names and descriptions of an attacker are harmless', async () => {
  const refused = await ask(first, 'POST', '/types', { name: EVIL });
  assert.equal(refused.status, 400, 'such a name is refused');
  const description = EVIL + 'x'.repeat(60_000);
  await api('POST', '/types', { name: 'evil', description });
  for (const path of ['/types', '/types/evil', '/audit', '/']) {
    await go(path);
    await settled(page, path);
    await harmless(path);
  }
  await go('/types/evil');
  await button('Show more').first().click();
  await button('Show less').first().waitFor();
  await harmless('the long description');
  await page.goto(`${first.url}/types/${encodeURIComponent(EVIL)}`);
  await page.getByRole('alert').first().waitFor();
  await harmless('an evil address');
});

step('the policy forbids inline scripts', async () => {
  const answer = await fetch(`${first.url}/`, { headers: { accept: 'text/html' } });
  const policy = answer.headers.get('content-security-policy');
  assert.match(policy, /script-src 'self'(;|$)/);
  assert.match(policy, /default-src 'none'/);
});

/** Views by their address; how many charts each must have drawn. */
const VIEWS = {
  '/': 1,
  '/types': 0,
  '/types/busy': 3,
  '/types/new': 0,
  '/redis': 0,
  '/audit': 0,
  '/access': 0,
  '/import': 0,
};

/** Waits until a view shows what it is for: data of the stream, and its charts. */
async function settled(of, path) {
  await status(/^(live|实时)$/, of).waitFor();
  await status(/Loading|加载中/, of)
    .first()
    .waitFor({ state: 'detached' });
  const charts = VIEWS[path] ?? 0;
  if (charts > 0)
    await of
      .locator('main canvas')
      .nth(charts - 1)
      .waitFor();
}

step('every view is accessible, in both languages and schemes', async () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  const found = [];
  let views = 0;
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
    const looker = await openPage(look);
    const judge = async (name) => {
      const at = `${name} ${width} ${scheme} ${locale}`;
      if (given.shots) {
        await looker.screenshot({ path: `${given.shots}/${at.replace(/[ /]+/g, '-')}.png` });
      }
      // The policy blocks an added script element, not an evaluation from outside.
      await looker.evaluate(axe);
      const violations = await looker.evaluate(async () => {
        const runOnly = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'];
        const { violations } = await window.axe.run(document, { runOnly });
        return violations.map((each) => `${each.id}: ${each.nodes[0].html.slice(0, 200)}`);
      });
      found.push(...violations.map((each) => `${at}: ${each}`));
      const wide = await looker.evaluate(
        () => document.documentElement.scrollWidth > innerWidth + 1,
      );
      if (wide) found.push(`${at}: wider than the window`);
      views += 1;
    };
    await go('/login', looker);
    await judge('login');
    await look.addCookies(await context.cookies());
    for (const path of Object.keys(VIEWS)) {
      await go(path, looker);
      await settled(looker, path);
      await judge(path);
    }
    // A dialog.
    await go('/redis', looker);
    await looker.getByRole('button', { name: /Add a Redis instance|添加/ }).click();
    await looker.getByRole('dialog').waitFor();
    await judge('dialog');
    await look.close();
  }
  assert.deepEqual(found, []);
  assert.equal(views, 4 * (2 + Object.keys(VIEWS).length));
});

step('everything can be reached by keyboard', async () => {
  // Whether the list has come or not when Enter is pressed.
  for (const waits of [false, true]) {
    await go('/types');
    await page.keyboard.press('/');
    await page.keyboard.type('order');
    if (waits) await page.getByRole('option', { name: /^order/ }).waitFor();
    await page.keyboard.press('Enter');
    await heading(/order/).waitFor();
  }
  // A dialog takes the focus, Escape closes it, and the focus is where it was.
  await button('Retire').focus();
  await page.keyboard.press('Enter');
  await field('Type order to confirm', dialog()).waitFor();
  await page.keyboard.type('order');
  assert.equal(await field('Type order to confirm', dialog()).inputValue(), 'order');
  await page.keyboard.press('Escape');
  await closed();
  assert.equal(await page.evaluate(() => document.activeElement.textContent.trim()), 'Retire');
  await go('/');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main', 'past the menu');
});

step('without a stream the page says so, and goes on asking', async () => {
  await page.route('**/api/v1/stream*', (route) => route.abort());
  await go('/');
  await status(/reconnecting/).waitFor();
  await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
  await page.unroute('**/api/v1/stream*');
  await button('Now').click();
  await status(/^live$/).waitFor();
});

step('a dead node is shown as silent, and data of a node that hangs as old', async () => {
  await go('/');
  await status(/^live$/).waitFor();
  process.kill(second.pid, 'SIGKILL');
  await page.getByText(/^silent for/).waitFor({ timeout: 30_000 });
  await page.getByText('Node is silent').waitFor();
  process.kill(first.pid, 'SIGSTOP');
  try {
    await status(/The data are old/).waitFor({ timeout: 30_000 });
    await page.getByText(/^data is .* old$/).waitFor();
  } finally {
    process.kill(first.pid, 'SIGCONT');
  }
  await status(/^live$/).waitFor({ timeout: 60_000 });
});

step('the browser complained of nothing', async () => {
  assert.deepEqual(complaints, []);
});
