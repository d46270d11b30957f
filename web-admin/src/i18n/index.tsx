/**
 * The languages. A dictionary is a plain object: `t.types.title`, or a function where
 * something is put in. The compiler checks that every language has every entry.
 */
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react';
import { type Dictionary, en } from './en';

export const LANGUAGES = { en: 'English', zh: '中文' } as const;
export type Language = keyof typeof LANGUAGES;

const load: Record<Language, () => Promise<Dictionary>> = {
  en: () => Promise.resolve(en),
  zh: () => import('./zh').then((module) => module.zh),
};

const STORED = 'idgen.language';

/** The stored choice, else the first language of the browser that the page speaks. */
export function preferred(): Language {
  const known = (code: string | null): code is Language => code !== null && code in LANGUAGES;
  const stored = localStorage.getItem(STORED);
  if (known(stored)) return stored;
  const found = navigator.languages.map((code) => code.slice(0, 2).toLowerCase()).find(known);
  return found ?? 'en';
}

interface Value {
  t: Dictionary;
  language: Language;
  setLanguage(language: Language): void;
}

const Context = createContext<Value | null>(null);

export function I18nProvider({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useState<Language>(preferred);
  const [shown, setShown] = useState<{ t: Dictionary; language: Language } | null>(
    language === 'en' ? { t: en, language } : null,
  );
  useEffect(() => {
    let wanted = true;
    load[language]()
      .catch(() => en)
      .then((t) => {
        if (!wanted) return;
        setShown({ t, language });
        document.documentElement.lang = language === 'zh' ? 'zh-Hans' : language;
      });
    return () => {
      wanted = false;
    };
  }, [language]);
  if (shown === null) return null;
  const choose = (next: Language) => {
    localStorage.setItem(STORED, next);
    setLanguage(next);
  };
  return <Context value={{ ...shown, setLanguage: choose }}>{children}</Context>;
}

export function useI18n(): Value {
  const value = useContext(Context);
  if (value === null) throw new Error('no I18nProvider above');
  return value;
}

/** The dictionary of the chosen language. */
export const useT = (): Dictionary => useI18n().t;
