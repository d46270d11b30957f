/** A small line without axes; its numbers stand beside it, so it is decoration for screen readers. */
import { memo } from 'react';

export const Spark = memo(function Spark({
  values,
  width = 96,
  height = 24,
}: {
  values: readonly (number | null)[];
  width?: number;
  height?: number;
}) {
  return (
    <svg
      className="spark"
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path d={line(values, width, height)} />
    </svg>
  );
});

/** From zero to the highest value; a gap where nothing is known. */
export function line(values: readonly (number | null)[], width: number, height: number): string {
  const highest = Math.max(1e-9, ...values.map((value) => value ?? 0));
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  let path = '';
  let pen = false;
  values.forEach((value, index) => {
    if (value === null) {
      pen = false;
      return;
    }
    const y = height - 1.5 - (value / highest) * (height - 3);
    path += `${pen ? 'L' : 'M'}${(index * step).toFixed(1)} ${y.toFixed(1)}`;
    pen = true;
  });
  return path;
}
