/** The inputs of a type's settings: for a new one and for a change. */
import { useOverview } from '../api/queries';
import { MODES } from '../api/types';
import { useT } from '../i18n';
import { type Draft, FITS } from '../lib/draft';
import type { Errors } from '../lib/rules';
import { AreaField, CheckField, SelectField, SuggestField, TextField } from './fields';

const ZONES = Intl.supportedValuesOf('timeZone');

export interface TypeFieldsProps {
  draft: Draft;
  change(part: Partial<Draft>): void;
  errors: Errors;
  /** Ids were issued: mode and most options are fixed. */
  fixed?: boolean;
  /** A change: no name, no first id, no instance. */
  existing?: boolean;
}

export function BasicFields({ draft, change, errors, existing, fixed }: TypeFieldsProps) {
  const t = useT();
  const { data } = useOverview();
  return (
    <div className="fields">
      {!existing && (
        <TextField
          label={t.common.name}
          name="name"
          hint={t.form.nameHint}
          value={draft.name}
          error={errors.name}
          onChange={(name) => change({ name })}
          mono
          required
          autoFocus
        />
      )}
      {existing && (
        <SelectField
          label={t.common.mode}
          name="mode"
          value={draft.mode}
          error={errors.mode}
          disabled={fixed}
          onChange={(mode) => change({ mode })}
          options={MODES.map((mode) => [mode, t.modes[mode].name] as const)}
        />
      )}
      {!existing && (
        <SelectField
          label={t.common.instance}
          name="instance"
          value={draft.instance}
          error={errors.instance}
          searchable
          onChange={(instance) => change({ instance })}
          options={[
            ['', t.form.anyInstance],
            ...(data?.instances ?? [])
              .filter((each) => each.drain_to === null)
              .map((each) => [each.name, each.name] as const),
          ]}
        />
      )}
      <TextField
        label={t.form.prefix}
        name="prefix"
        hint={t.form.prefixHint}
        value={draft.prefix}
        error={errors.prefix}
        onChange={(prefix) => change({ prefix })}
        mono
      />
      {draft.mode === 'sharded' && (
        <TextField
          label={t.option.app_id}
          name="app_id"
          hint={t.form.appIdHint}
          value={draft.app_id}
          error={errors.app_id}
          disabled={fixed}
          onChange={(app_id) => change({ app_id })}
          numeric
          required
        />
      )}
      <div className="full">
        <AreaField
          label={t.form.description}
          name="description"
          value={draft.description}
          error={errors.description}
          onChange={(description) => change({ description })}
          rows={2}
        />
      </div>
    </div>
  );
}

export function LimitFields({ draft, change, errors, existing }: TypeFieldsProps) {
  const t = useT();
  const text = (
    name: 'min_range' | 'max_range' | 'load_interval_ms' | 'lock_ttl_ms' | 'load_percentage',
  ) => (
    <TextField
      label={t.form[name]}
      name={name}
      hint={t.form.hints[name]}
      value={draft[name]}
      error={errors[name]}
      onChange={(value) => change({ [name]: value })}
      numeric
    />
  );
  return (
    <div className="fields">
      {draft.mode !== 'snowflake' && !existing && (
        <TextField
          label={t.form.first_id}
          name="first_id"
          value={draft.first_id}
          error={errors.first_id}
          onChange={(first_id) => change({ first_id })}
          numeric
        />
      )}
      {draft.mode !== 'snowflake' && (
        <TextField
          label={t.form.max_id}
          name="max_id"
          hint={t.form.maxHint}
          placeholder={existing ? '' : t.form.maxDefault}
          list="max-ids"
          value={draft.max_id}
          error={errors.max_id}
          onChange={(max_id) => change({ max_id })}
          numeric
        />
      )}
      <datalist id="max-ids">
        <option value="2147483647">{t.form.fitsInt}</option>
        <option value="4294967295">{t.form.fitsUnsigned}</option>
        <option value="9007199254740991">{t.form.fitsJs}</option>
      </datalist>
      {text('min_range')}
      {text('max_range')}
      {text('load_interval_ms')}
      {text('load_percentage')}
      {text('lock_ttl_ms')}
    </div>
  );
}

export function OptionFields({ draft, change, errors, fixed }: TypeFieldsProps) {
  const t = useT();
  const fits = (option: keyof typeof FITS) => FITS[option].includes(draft.mode);
  return (
    <div className="stack">
      <div className="fields">
        <TextField
          label={t.option.format}
          name="format"
          hint={t.form.formatHint}
          placeholder="{prefix}{date:yyMMdd}{seq:06}"
          value={draft.format}
          error={errors.format}
          disabled={fixed}
          onChange={(format) => change({ format })}
          mono
        />
        {fits('calendar') && (
          <SelectField
            label={t.option.calendar}
            name="calendar"
            value={draft.calendar}
            error={errors.calendar}
            disabled={fixed}
            onChange={(calendar) => change({ calendar })}
            options={[
              ['', t.form.calendarNo],
              ['daily', t.form.daily],
              ['monthly', t.form.monthly],
              ['yearly', t.form.yearly],
            ]}
          />
        )}
        <SuggestField
          label={t.option.time_zone}
          name="time_zone"
          hint={t.form.zoneHint}
          placeholder="UTC"
          options={ZONES}
          value={draft.time_zone}
          error={errors.time_zone}
          disabled={fixed}
          onChange={(time_zone) => change({ time_zone })}
        />
      </div>
      {fits('cycle') && (
        <>
          <CheckField
            label={t.option.cycle}
            name="at_limit"
            hint={t.form.cycleHint}
            checked={draft.cycle}
            disabled={fixed}
            onChange={(cycle) => change({ cycle })}
          />
          <Wrong text={errors.at_limit} />
        </>
      )}
      {fits('redisLossSegment') && (
        <CheckField
          label={t.option.on_redis_loss}
          name="on_redis_loss"
          hint={t.form.redisLossHint}
          checked={draft.redisLossSegment}
          onChange={(redisLossSegment) => change({ redisLossSegment })}
        />
      )}
      {fits('opaque') && (
        <>
          <CheckField
            label={t.option.opaque}
            name="opaque"
            hint={t.form.opaqueHint}
            checked={draft.opaque}
            disabled={fixed}
            onChange={(opaque) => change({ opaque })}
          />
          <Wrong text={errors.opaque} />
          {draft.opaque && (
            <div className="fields">
              <TextField
                label={t.form.slices}
                name="opaque.slices"
                hint={t.form.slicesHint}
                value={draft.slices}
                error={errors['opaque.slices']}
                disabled={fixed}
                onChange={(slices) => change({ slices })}
                numeric
              />
            </div>
          )}
        </>
      )}
      {fits('sites') && (
        <>
          <CheckField
            label={t.option.sites}
            name="sites"
            hint={t.form.sitesHint}
            checked={draft.sites}
            disabled={fixed}
            onChange={(sites) => change({ sites })}
          />
          <Wrong text={errors.sites} />
          {draft.sites && (
            <div className="fields">
              <TextField
                label={t.form.siteCount}
                name="sites.count"
                value={draft.site_count}
                error={errors['sites.count']}
                disabled={fixed}
                onChange={(site_count) => change({ site_count })}
                numeric
              />
              <TextField
                label={t.form.site}
                name="sites.site"
                value={draft.site}
                error={errors['sites.site']}
                disabled={fixed}
                onChange={(site) => change({ site })}
                numeric
              />
            </div>
          )}
        </>
      )}
      {fits('layout') && (
        <>
          <CheckField
            label={t.option.snowflake}
            name="snowflake"
            hint={t.form.layoutHint}
            checked={draft.layout}
            disabled={fixed}
            onChange={(layout) => change({ layout })}
          />
          <Wrong text={errors.snowflake} />
          {draft.layout && (
            <div className="fields">
              {(['time_bits', 'worker_bits', 'sequence_bits'] as const).map((name) => (
                <TextField
                  key={name}
                  label={t.form[name]}
                  name={`snowflake.${name}`}
                  value={draft[name]}
                  error={errors[`snowflake.${name}`]}
                  disabled={fixed}
                  onChange={(value) => change({ [name]: value })}
                  numeric
                />
              ))}
              <SelectField
                label={t.form.unit}
                value={draft.unit}
                disabled={fixed}
                onChange={(unit) => change({ unit })}
                options={[
                  ['ms', t.form.unitMs],
                  ['s', t.form.unitS],
                ]}
              />
              <TextField
                label={t.form.epoch}
                name="snowflake.epoch_ms"
                hint={t.form.epochHint}
                value={draft.epoch}
                error={errors['snowflake.epoch_ms']}
                disabled={fixed}
                onChange={(epoch) => change({ epoch })}
                mono
              />
            </div>
          )}
        </>
      )}
    </div>
  );
}

function Wrong({ text }: { text: string | undefined }) {
  return text ? (
    <div className="field">
      <p className="error" role="alert">
        {text}
      </p>
    </div>
  ) : null;
}
