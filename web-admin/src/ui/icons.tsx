/** The icons, by what they stand for. Decoration only: a text says the same beside each. */
// One by one: the index of the package names 6000 others, which would make builds slow.
import IconAlertTriangle from '@tabler/icons-react/dist/esm/icons/IconAlertTriangle.mjs';
import IconArrowRight from '@tabler/icons-react/dist/esm/icons/IconArrowRight.mjs';
import IconCheck from '@tabler/icons-react/dist/esm/icons/IconCheck.mjs';
import IconChevronRight from '@tabler/icons-react/dist/esm/icons/IconChevronRight.mjs';
import IconCircleX from '@tabler/icons-react/dist/esm/icons/IconCircleX.mjs';
import IconCopy from '@tabler/icons-react/dist/esm/icons/IconCopy.mjs';
import IconDatabase from '@tabler/icons-react/dist/esm/icons/IconDatabase.mjs';
import IconDownload from '@tabler/icons-react/dist/esm/icons/IconDownload.mjs';
import IconFileText from '@tabler/icons-react/dist/esm/icons/IconFileText.mjs';
import IconInfoCircle from '@tabler/icons-react/dist/esm/icons/IconInfoCircle.mjs';
import IconKey from '@tabler/icons-react/dist/esm/icons/IconKey.mjs';
import IconLayoutDashboard from '@tabler/icons-react/dist/esm/icons/IconLayoutDashboard.mjs';
import IconListNumbers from '@tabler/icons-react/dist/esm/icons/IconListNumbers.mjs';
import IconMenu2 from '@tabler/icons-react/dist/esm/icons/IconMenu2.mjs';
import IconPlus from '@tabler/icons-react/dist/esm/icons/IconPlus.mjs';
import IconRefresh from '@tabler/icons-react/dist/esm/icons/IconRefresh.mjs';
import IconSearch from '@tabler/icons-react/dist/esm/icons/IconSearch.mjs';
import IconSortAscending from '@tabler/icons-react/dist/esm/icons/IconSortAscending.mjs';
import IconSortDescending from '@tabler/icons-react/dist/esm/icons/IconSortDescending.mjs';
import IconUser from '@tabler/icons-react/dist/esm/icons/IconUser.mjs';
import IconX from '@tabler/icons-react/dist/esm/icons/IconX.mjs';

const icons = {
  overview: IconLayoutDashboard,
  types: IconListNumbers,
  redis: IconDatabase,
  audit: IconFileText,
  access: IconKey,
  import: IconDownload,
  search: IconSearch,
  menu: IconMenu2,
  close: IconX,
  alert: IconAlertTriangle,
  down: IconCircleX,
  info: IconInfoCircle,
  ok: IconCheck,
  copy: IconCopy,
  plus: IconPlus,
  retry: IconRefresh,
  move: IconArrowRight,
  user: IconUser,
  arrow: IconChevronRight,
  up: IconSortAscending,
  back: IconSortDescending,
} as const;

export type IconName = keyof typeof icons;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  const Drawn = icons[name];
  return <Drawn className="icon" size={size} stroke={1.8} aria-hidden="true" />;
}
