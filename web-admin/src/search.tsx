/** Jumps to a type: `/` leads here, arrows choose, Enter goes. */
import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { get } from './api/client';
import type { List, TypeRecord } from './api/types';
import { useT } from './i18n';
import { useDebounced } from './lib/debounced';
import { Icon } from './ui/icons';

const SHOWN = 8;

export function Search() {
  const t = useT();
  const id = useId();
  const [, go] = useLocation();
  const [text, setText] = useState('');
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const wanted = useDebounced(text.trim(), 150);
  const { data, isFetching } = useQuery({
    queryKey: ['search', wanted],
    queryFn: ({ signal }) =>
      get<List<TypeRecord>>('/types', { contains: wanted, limit: SHOWN, ids: 'string' }, signal),
    enabled: wanted !== '',
    staleTime: 10_000,
  });
  const found = wanted === '' ? [] : (data?.items ?? []);

  useEffect(() => {
    const key = (event: globalThis.KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const typing = target.closest('input, textarea, select, [contenteditable]') !== null;
      if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector('dialog[open]')) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    document.addEventListener('keydown', key);
    return () => document.removeEventListener('keydown', key);
  }, []);

  const choose = (name: string | undefined) => {
    if (name === undefined) return;
    setText('');
    setOpen(false);
    input.current?.blur();
    go(`/types/${encodeURIComponent(name)}`);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') setAt(Math.min(at + 1, found.length - 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0));
    else if (event.key === 'Enter') {
      // A name typed in full counts before the list has come.
      choose(found.find((each) => each.name === text.trim())?.name ?? found[at]?.name);
    } else if (event.key === 'Escape') {
      if (open && text !== '') setOpen(false);
      else input.current?.blur();
    } else return;
    event.preventDefault();
  };
  const showing = open && wanted !== '';
  return (
    <div className="search" role="search">
      <Icon name="search" />
      <input
        ref={input}
        type="search"
        role="combobox"
        aria-label={t.search.label}
        aria-expanded={showing}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={showing && found[at] ? `${id}-${at}` : undefined}
        placeholder={t.search.placeholder}
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setOpen(true);
          setAt(0);
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={key}
      />
      <span className="key" aria-hidden="true">
        /
      </span>
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label={t.search.found}
        className="found"
        hidden={!showing}
      >
        {found.map((type, index) => (
          <div
            key={type.name}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            // Before the blur, which closes the list.
            onPointerDown={(event) => {
              event.preventDefault();
              choose(type.name);
            }}
          >
            <span className="cut">{type.name}</span>
            <small>{t.modes[type.mode].name}</small>
          </div>
        ))}
        {showing && found.length === 0 && (
          <div
            role="option"
            className="nothing"
            aria-selected={false}
            aria-disabled="true"
            tabIndex={-1}
          >
            {isFetching ? t.common.loading : t.search.nothing}
          </div>
        )}
      </div>
    </div>
  );
}
