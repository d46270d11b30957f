// `npm run walk`: goes the ways of an operator against the fake node, with the policy
// of a node. For developing; the tests of the whole program use a real node.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { start } from './fake.mjs';

const fake = await start();
const { world } = fake;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
const context = await browser.newContext({
  viewport: { width: 1440, height: 900 },
  locale: 'en-GB',
});
const page = await context.newPage();
page.setDefaultTimeout(8_000);
const errors = [];
page.on('pageerror', (error) => errors.push(error.message));
page.on('console', (message) => {
  if (message.type() === 'error' && !/status of (40[0139]|503)/.test(message.text()))
    errors.push(message.text());
});
const button = (name, scope = page) => scope.getByRole('button', { name, exact: true });
const field = (name, scope = page) => scope.getByLabel(name, { exact: true });
const dialog = () => page.getByRole('dialog');
const shot = (name) =>
  page.screenshot({ path: new URL(`../shots/walk-${name}.png`, import.meta.url).pathname });

const WAYS = {
  async 'logs in, and comes to where one wanted to go'() {
    await page.goto(`${fake.url}/audit`);
    await field('User name').fill('alice');
    await field('Password').fill('wrong');
    await button('Log in').click();
    await page.getByText('name or password is wrong').waitFor();
    await field('Password').fill('correct horse battery');
    await button('Log in').click();
    await page.getByRole('heading', { name: 'Audit log', level: 1 }).waitFor();
    assert.equal(new URL(page.url()).pathname, '/audit');
  },

  async 'switches the colours, keeps them, and goes by keyboard'() {
    const scheme = () =>
      page.evaluate(() => document.documentElement.dataset.mantineColorScheme ?? '');
    await field('Colours').selectOption('dark');
    assert.equal(await scheme(), 'dark');
    await page.reload();
    await field('Colours').waitFor();
    assert.equal(await scheme(), 'dark');
    await field('Colours').selectOption('auto');
    assert.equal(await scheme(), 'light');
    // A list that finds by typing; and a dialog that gives the focus back.
    await page.getByRole('combobox', { name: 'Action' }).click();
    await page.keyboard.type('retire');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByText('state', { exact: true }).first().waitFor();
    assert.equal(await page.getByText('max_range, options.format').count(), 0);
    await page.goto(`${fake.url}/access`);
    await button('New account').press('Enter');
    for (let i = 0; i < 12; i += 1) await page.keyboard.press('Tab');
    assert.ok(await page.evaluate(() => document.activeElement.closest('[role=dialog]') !== null));
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'New account');
  },

  async 'finds one of 10 000 types, by search and by slash'() {
    await page.getByRole('link', { name: 'Id types' }).click();
    await page.getByText('10\u202f000 types').waitFor();
    await page.getByLabel('Search').fill('trace.00076');
    await page.getByText('1 of 10\u202f000 types').waitFor();
    await page.keyboard.press('Tab');
    await page.getByRole('heading', { level: 1 }).click();
    await page.keyboard.press('/');
    await page.keyboard.type('order');
    await page.getByRole('option', { name: /^order strict/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'order' }).first().waitFor();
  },

  async 'shows both changes where somebody else was faster'() {
    await button('Change').click();
    await field('Longest range', dialog()).fill('0');
    await dialog().getByText('From 1000 to 1000000000000.').waitFor();
    await field('Longest range', dialog()).fill('5000000');
    await field('Prefix', dialog()).fill('m-');
    await field('Description', dialog()).fill('short');
    const type = world.types.get('order');
    Object.assign(type, { max_range: 7_000_000, lock_ttl_ms: 20_000, version: type.version + 1 });
    await button('Save', dialog()).click();
    await dialog().getByText('order was changed by somebody else').waitFor();
    await dialog()
      .getByRole('row', { name: /max_range .*both changed it 100000000 7000000 5000000/ })
      .waitFor();
    await shot('conflict');
    assert.equal(type.max_range, 7_000_000);
    await button('Put mine on top', dialog()).click();
    assert.equal(await field('Refill lock (ms)', dialog()).inputValue(), '20000');
    await button('Save', dialog()).click();
    await page.getByText('Saved.').waitFor();
    assert.equal(type.max_range, 5_000_000);
    assert.equal(type.lock_ttl_ms, 20_000);
    assert.equal(type.prefix, 'm-');
  },

  async 'retires and restores, typing the name'() {
    await button('Retire').click();
    assert.ok(await button('Retire', dialog()).isDisabled());
    await field('Type order to confirm', dialog()).fill('order');
    await button('Retire', dialog()).click();
    await page.getByText('order is retired.').waitFor();
    await button('Restore').click();
    await field('Type order to confirm', dialog()).fill('order');
    await button('Restore', dialog()).click();
    await page.getByText('order is active again.').waitFor();
  },

  async 'moves, after a dry run, and back'() {
    await button('Move').click();
    await field('To', dialog()).selectOption('old-rack-7');
    await dialog().getByText('Redis instance old-rack-7 does not answer').waitFor();
    assert.ok(await button('Move it', dialog()).isDisabled());
    await field('To', dialog()).selectOption('spare');
    await dialog()
      .getByText(/1\u202f000 ids that are left there go along/)
      .waitFor();
    await shot('move');
    await button('Move it', dialog()).click();
    await dialog()
      .getByText(/Moved to spare in 12/)
      .waitFor();
    await dialog().getByRole('button', { name: 'Close' }).last().click();
    await button('Undo the move').click();
    await button('Undo the move', dialog()).click();
    await page.getByText('order is on main.').waitFor();
  },

  async 'takes ids above 2^53 to the digit, decodes, reserves'() {
    await field('How many').fill('3');
    await button('Take ids').click();
    const next = BigInt(world.types.get('order').next_id) + 9007199254740993n;
    await page
      .getByTestId('issued')
      .getByText(String(next + 2n))
      .waitFor();
    await field('Id, as a number or as text').fill('??');
    await button('Decode').click();
    await page.getByText('id is not one of this type').waitFor();
    await field('Id, as a number or as text').fill('9223372036854775000');
    await button('Decode').click();
    await page.getByText('was issued').waitFor();
    await button('Reserve a block').click();
    await field('How many', dialog()).fill('5000');
    await button('Reserve a block', dialog()).click();
    await dialog().getByText('5\u202f000 ids are yours').waitFor();
    await dialog().getByRole('button', { name: 'Close' }).last().click();
  },

  async 'makes a type, with the rules at the fields and a preview'() {
    await page.goto(`${fake.url}/types/new`);
    await button('Create the type').click();
    await page.getByText('This is needed.').waitFor();
    await field('Name').fill('bad name');
    await page.getByText('1 to 128 letters').waitFor();
    await field('Name').fill('ticket.9');
    await field('Text format').fill('{seq:0}');
    await page.getByText('Character 1: the width is').waitFor();
    await field('Text format').fill('');
    await field('Shortest range').fill('7');
    await page.getByText('min_range 7 is not liked here').first().waitFor();
    await field('Shortest range').fill('500');
    await page.getByText('Ids ascend.').waitFor();
    await page.getByText('sharded', { exact: true }).click();
    await field('App id').fill('300');
    await page.getByText('From 0 to 255.').waitFor();
    await field('App id').fill('7');
    await shot('new');
    await button('Create the type').click();
    await page.getByRole('heading', { name: 'ticket.9' }).waitFor();
    assert.deepEqual(world.types.get('ticket.9').options, { app_id: 7 });
  },

  async 'adds an instance after a test, drains, ends, removes'() {
    await page.goto(`${fake.url}/redis`);
    await button('Add a Redis instance').click();
    await field('Name', dialog()).fill('fresh');
    await field('URL', dialog()).fill('redis://u:p@down.example');
    await button('Test the connection', dialog()).click();
    await dialog().getByText('It does not answer: connection refused').waitFor();
    assert.ok(await button('Add', dialog()).isDisabled());
    await field('URL', dialog()).fill('redis://u:p@fresh.example');
    await button('Test the connection', dialog()).click();
    await dialog()
      .getByText(/It answers, in 0.32/)
      .waitFor();
    await button('Add', dialog()).click();
    await page.getByText('fresh is added.').waitFor();
    const card = (name) => page.getByRole('region', { name: new RegExp(`^${name} `) });
    await button('Drain', card('spare')).click();
    await field('To', dialog()).selectOption('main');
    await button('Drain', dialog()).click();
    await card('spare').getByText('drains to main').waitFor();
    world.instances.find((each) => each.name === 'spare').types = 12;
    await card('spare').getByText('12 types are left.').waitFor();
    await shot('drain');
    await button('End the drain', card('spare')).click();
    await button('Drain', card('spare')).waitFor();
    await button('Remove', card('fresh')).click();
    await field('Type fresh to confirm', dialog()).fill('fresh');
    await button('Remove', dialog()).click();
    await page.getByText('fresh is removed.').waitFor();
  },

  async 'makes an account and a token, whose secret is shown once'() {
    await page.getByRole('link', { name: 'Access' }).click();
    await button('New account').click();
    await field('Name', dialog()).fill('carol');
    await field('Password', dialog()).fill('abc');
    await button('Create', dialog()).click();
    await dialog().getByText('it must have at least 10').first().waitFor();
    await field('Password', dialog()).fill('long enough for all');
    await button('Create', dialog()).click();
    await page.getByRole('row', { name: /^carol view/ }).waitFor();
    await button('Remove the account alice').click();
    await field('Type alice to confirm', dialog()).fill('alice');
    await button('Remove', dialog()).click();
    await dialog().getByText('alice is the last enabled administrator').waitFor();
    await button('Cancel', dialog()).click();
    await button('New token').click();
    await field('Name', dialog()).fill('ci');
    await field('For types', dialog()).fill('ci.* order');
    await field('Quota', dialog()).fill('none');
    await dialog().getByText('A whole number').waitFor();
    await field('Quota', dialog()).fill('250');
    await button('Create', dialog()).click();
    await page.getByTestId('secret').getByText('idg_').waitFor();
    await button('I have it').click();
    assert.equal(await page.getByText('idg_').count(), 0);
    const { types, role, quota } = world.tokens.at(-1);
    assert.deepEqual([types, role, quota], [['ci.*', 'order'], 'issue', 250]);
    await page.getByRole('row', { name: /^ci issue ci.* order 250/ }).waitFor();
  },

  async 'imports after a dry run, without what was unticked'() {
    await page.getByRole('link', { name: 'Import and export' }).click();
    await field('Text').fill('alpha,1\nbeta,2\norder,3\n?,4\n');
    await button('Dry run').click();
    await page.getByText('New: 2. There already: 1. Failed: 1.').waitFor();
    await page.getByRole('row', { name: /alpha/ }).getByText('9007199254740993').waitFor();
    await page.getByRole('checkbox', { name: 'beta' }).click();
    await shot('import');
    await button('Import 1 type').click();
    await button('Import 1 type', dialog()).click();
    await page.getByText('New: 1. There already: 0. Failed: 0.').waitFor();
  },

  async 'asks for the login again, and keeps what was typed'() {
    await page.goto(`${fake.url}/types/new`);
    await field('Name').fill('kept.name');
    world.sessions.clear();
    fake.endStreams();
    await dialog().getByText('Your session has ended').waitFor({ timeout: 15_000 });
    await field('Password', dialog()).fill('correct horse battery');
    await button('Log in', dialog()).click();
    await dialog().waitFor({ state: 'detached' });
    assert.equal(await field('Name').inputValue(), 'kept.name');
  },

  async 'says how old data are, and that they are'() {
    await page.goto(`${fake.url}/`);
    await page.getByTestId('freshness').getByText('live').first().waitFor();
    world.streamDown = true;
    world.broken = true;
    fake.endStreams();
    await page.getByText(/data is \d+\Ws old/).waitFor({ timeout: 15_000 });
    assert.equal(await page.locator('.app.stale').count(), 1);
    await shot('stale');
    world.broken = false;
    await page
      .getByTestId('freshness')
      .getByText(/reconnecting/)
      .first()
      .waitFor({ timeout: 15_000 });
    world.streamDown = false;
    world.calm = true;
    await button('Now').click();
    await page.getByTestId('freshness').getByText('live').first().waitFor({ timeout: 15_000 });
    await page.getByText('Nothing needs attention.').waitFor();
  },

  async 'shows a viewer what he may not do'() {
    await button('Log out').click();
    await field('User name').fill('bob');
    await field('Password').fill('correct horse battery');
    await button('Log in').click();
    await page.getByRole('link', { name: 'Id types' }).click();
    await page
      .getByRole('link', { name: 'order', exact: true })
      .or(page.getByText('10\u202f00'))
      .first()
      .waitFor();
    assert.equal(await page.getByRole('link', { name: 'New id type' }).count(), 0);
    await page.goto(`${fake.url}/types/order`);
    assert.ok(await button('Retire').isDisabled());
    await button('Log out').click();
    await field('User name').waitFor();
  },

  async 'sets up the first account with the token of the link'() {
    world.setup = true;
    await page.goto(`${fake.url}/setup#TOKEN`);
    await page.reload();
    await page.goto(`${fake.url}/login`);
    await page.getByText('There is no account yet.').waitFor();
    await page.goto(`${fake.url}/setup#TOKEN`);
    assert.equal(await field('Set-up token').inputValue(), 'TOKEN');
    assert.equal(new URL(page.url()).hash, '');
    await field('User name').fill('root');
    await field('Password').fill('correct horse battery');
    await field('Password again').fill('other');
    await page.getByText('The two passwords differ.').waitFor();
    await field('Password again').fill('correct horse battery');
    await button('Create the account').click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  },
};

let failed = 0;
for (const [name, way] of Object.entries(WAYS)) {
  try {
    await way();
    console.log(`ok    ${name}`);
  } catch (error) {
    failed += 1;
    console.log(
      `FAIL  ${name}\n      ${String(error.message).split('\n').slice(0, 6).join('\n      ')}`,
    );
    await shot(`failed-${failed}`);
    if (process.argv[2] !== '--all') break;
  }
}
for (const error of errors) console.log(`error ${error}`);
await browser.close();
fake.close();
process.exit(failed + errors.length === 0 ? 0 : 1);
