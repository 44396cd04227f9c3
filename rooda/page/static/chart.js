// Draws cost and tokens of a run's iterations.

import uPlot from "./uPlot.esm.js";

const drawn = new WeakMap(); // by place: the points, and the chart
const HEIGHT = 160;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const money = (value) => (value === null ? "" : `$${value >= 0.1 || value === 0 ? value.toFixed(2) : value.toFixed(4)}`);
const short = (value) => (value >= 1e6 ? `${+(value / 1e6).toFixed(1)}M` : value >= 1e3 ? `${+(value / 1e3).toFixed(1)}k` : `${value}`);

export function draw(place) {
  const plot = place.querySelector(".plot");
  const before = drawn.get(plot);
  if (before?.points === place.dataset.points) return;
  const rows = JSON.parse(place.dataset.points);
  const data = [rows.map((row) => row[0]), rows.map((row) => row[1]), rows.map((row) => row[2])];
  before?.chart.destroy();
  const chart = new uPlot(options(plot, data), data, plot);
  drawn.set(plot, { points: place.dataset.points, chart });
  if (!before) follow(place, plot);
}

function follow(place, plot) {
  new ResizeObserver(() => drawn.get(plot).chart.setSize({ width: plot.clientWidth, height: HEIGHT })).observe(plot);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    drawn.get(plot).points = "";
    draw(place);
  });
}

function options(plot, [numbers, costs, tokens]) {
  const [soft, line, live, good] = ["--soft", "--line", "--live", "--good"].map(colour);
  const known = (values) => values.some((value) => value !== null);
  const axis = { stroke: soft, font: "12px system-ui, sans-serif", ticks: { show: false }, grid: { stroke: line, width: 1 } };
  const whole = (_, splits) => splits.map((value) => (numbers.includes(value) ? value : ""));
  const values = (format) => (_, splits) => splits.map((value) => format(value));
  return {
    width: plot.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, known(tokens) ? 0 : 12, 0, 0],
    scales: { x: { time: false, range: (_, from, to) => [from - 0.6, to + 0.6] }, cost: { range: fromZero }, tokens: { range: fromZero } },
    axes: [
      { ...axis, grid: { show: false }, values: whole, size: 26 },
      { ...axis, stroke: live, scale: "cost", show: known(costs), values: values(money), size: 54 },
      { ...axis, stroke: good, scale: "tokens", side: 1, show: known(tokens), values: values(short), size: 48, grid: { show: !known(costs), stroke: line, width: 1 } },
    ],
    series: [
      {},
      { scale: "cost", stroke: live, fill: live + "55", width: 1, paths: uPlot.paths.bars({ size: [0.6, 28] }), points: { show: false } },
      { scale: "tokens", stroke: good, width: 1.5, points: { show: costs.length < 40, size: 5, fill: good } },
    ],
  };
}

const fromZero = (_, from, to) => [0, to > 0 ? to * 1.1 : 1];
