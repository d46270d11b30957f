/** Jumps to a type: `/` leads here, arrows choose, Enter goes. */
import { Combobox, Kbd, TextInput, useCombobox } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { get } from './api/client';
import type { List, TypeRecord } from './api/types';
import { useT } from './i18n';
import { useDebounced } from './lib/debounced';
import { Icon } from './ui/icons';

const SHOWN = 8;

export function Search() {
  const t = useT();
  const [, go] = useLocation();
  const [text, setText] = useState('');
  const list = useCombobox({ onDropdownClose: () => list.resetSelectedOption() });
  const input = useRef<HTMLInputElement>(null);
  const wanted = useDebounced(text.trim(), 150);
  const { data, isFetching, isPlaceholderData } = useQuery({
    queryKey: ['search', wanted],
    queryFn: ({ signal }) =>
      get<List<TypeRecord>>('/types', { contains: wanted, limit: SHOWN, ids: 'string' }, signal),
    enabled: wanted !== '',
    staleTime: 10_000,
    placeholderData: keepPreviousData,
  });
  // What is shown while the next list is on its way still has to fit what was typed.
  const fits = (name: string) => name.toLowerCase().includes(text.trim().toLowerCase());
  const found = wanted === '' ? [] : (data?.items ?? []).filter((each) => fits(each.name));
  // Enter was pressed before the list of what was typed had come.
  const [entered, setEntered] = useState(false);
  const isCurrent = wanted === text.trim() && data !== undefined && !isPlaceholderData;

  useEffect(() => {
    const key = (event: globalThis.KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const typing = target.closest('input, textarea, select, [contenteditable]') !== null;
      if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector('[role=dialog]')) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    document.addEventListener('keydown', key);
    return () => document.removeEventListener('keydown', key);
  }, []);

  // Enter takes the first one found.
  // biome-ignore lint/correctness/useExhaustiveDependencies: when another list has come
  useEffect(() => void list.selectFirstOption(), [data]);

  const choose = (name: string) => {
    setText('');
    setEntered(false);
    list.closeDropdown();
    input.current?.blur();
    go(`/types/${encodeURIComponent(name)}`);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the list has come
  useEffect(() => {
    if (!entered || !isCurrent) return;
    setEntered(false);
    const first = found.find((each) => each.name === text.trim()) ?? found[0];
    if (first !== undefined) choose(first.name);
  }, [entered, isCurrent]);
  return (
    <div className="search" role="search">
      <Combobox store={list} onOptionSubmit={choose}>
        <Combobox.Target>
          <TextInput
            ref={input}
            type="search"
            size="xs"
            aria-label={t.search.label}
            placeholder={t.search.placeholder}
            autoComplete="off"
            spellCheck={false}
            leftSection={<Icon name="search" />}
            rightSection={<Kbd aria-hidden="true">/</Kbd>}
            rightSectionPointerEvents="none"
            value={text}
            onChange={(event) => {
              setText(event.currentTarget.value);
              setEntered(false);
              list.openDropdown();
            }}
            onFocus={() => list.openDropdown()}
            onBlur={() => list.closeDropdown()}
            onKeyDown={(event) => {
              // A name typed in full counts before the list has come.
              const typed = found.find((each) => each.name === text.trim())?.name;
              if (event.key === 'Enter' && typed !== undefined) {
                event.preventDefault();
                choose(typed);
              } else if (event.key === 'Enter' && text.trim() !== '' && !isCurrent) {
                event.preventDefault();
                setEntered(true);
              } else if (event.key === 'Escape' && !list.dropdownOpened) input.current?.blur();
            }}
          />
        </Combobox.Target>
        <Combobox.Dropdown hidden={wanted === ''}>
          <Combobox.Options aria-label={t.search.found}>
            {found.map((type) => (
              <Combobox.Option key={type.name} value={type.name} className="found">
                <span className="cut">{type.name}</span> <small>{t.modes[type.mode].name}</small>
              </Combobox.Option>
            ))}
            {found.length === 0 && (
              <Combobox.Empty>{isFetching ? t.common.loading : t.search.nothing}</Combobox.Empty>
            )}
          </Combobox.Options>
        </Combobox.Dropdown>
      </Combobox>
    </div>
  );
}
