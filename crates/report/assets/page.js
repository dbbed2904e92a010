// Draws the plots, and makes the buttons work. Everything else on the page does without.
(() => {
  'use strict';
  const { kernels } = JSON.parse(document.getElementById('data').textContent);
  const root = document.documentElement;
  const css = name => getComputedStyle(root).getPropertyValue(name).trim();
  const hidden = kernels.map(() => new Set());
  const logarithmic = kernels.map(() => false);
  const drawn = new Map();

  // Speeds where the program computes something, times in milliseconds where it does not.
  const valueOf = (kernel, seconds) => (kernel.flops > 0 ? kernel.flops / seconds / 1e9 : seconds * 1e3);
  const unitOf = kernel => (kernel.flops > 0 ? 'GFLOP/s' : 'ms');
  const short = value => {
    if (value == null) return '';
    if (value >= 1e6 || (value > 0 && value < 1e-3)) return value.toExponential(0);
    return value >= 100 ? Math.round(value).toLocaleString('en') : String(+value.toPrecision(3));
  };
  const span = seconds =>
    seconds < 120 ? `${short(seconds)} s` : seconds < 7200 ? `${short(seconds / 60)} min` : `${short(seconds / 3600)} h`;

  // Step functions on one common axis: each holds its value from its first place to its last.
  function align(lines) {
    const places = Float64Array.from(new Set(lines.flatMap(line => line.x))).sort();
    const columns = lines.map(line => {
      const column = new Array(places.length).fill(null);
      let at = -1;
      places.forEach((place, row) => {
        while (at + 1 < line.x.length && line.x[at + 1] <= place) at++;
        if (at >= 0 && place <= line.x[line.x.length - 1]) column[row] = line.y[at];
      });
      return column;
    });
    return [places, ...columns];
  }

  // The lines of a kernel: thin ones for runs, a thick one for the middle, or for the only run.
  function linesOf(kernel, axis) {
    const lines = [];
    kernel.strategies.forEach((strategy, place) => {
      const add = (x, seconds, thick) => {
        if (x.length) lines.push({ x, y: seconds.map(s => valueOf(kernel, s)), strategy: place, thick });
      };
      const alone = strategy.median == null;
      strategy.curves.forEach(curve => add(curve[axis], curve.seconds, alone));
      if (alone) return;
      const middle = strategy.median[`by_${axis}`];
      add(middle.map(step => step[0]), middle.map(step => step[1]), true);
    });
    // Thick lines over thin ones, and the best strategy, which comes first, over the others.
    return lines.sort((a, b) => a.thick - b.thick || b.strategy - a.strategy);
  }

  function axes(kernel, xLabel, xValues) {
    const look = { stroke: () => css('--soft'), grid: { stroke: () => css('--line'), width: 1 }, ticks: { stroke: () => css('--line'), width: 1 }, font: '12px system-ui, sans-serif', labelFont: '12px system-ui, sans-serif', labelSize: 18 };
    return [
      { ...look, label: xLabel, size: 34, space: 60, values: (u, splits) => splits.map(xValues) },
      { ...look, label: kernel.flops > 0 ? 'GFLOP/s' : 'ms of a call', size: 48, values: (u, splits) => splits.map(short) },
    ];
  }

  function options(element, number, series, xLabel, xValues, top) {
    const kernel = kernels[number];
    const log = logarithmic[number] && element.dataset.plot !== 'dots';
    const range = (u, low, high) => {
      if (low == null) return [0, 1];
      high = Math.max(high, top);
      // Ticks of a logarithmic axis count up from its lowest value: a round one makes all round.
      const power = 10 ** Math.floor(Math.log10(low));
      return log ? [Math.floor(low / power) * power, high * 1.15] : [0, high * 1.06 || 1];
    };
    return {
      width: Math.max(200, element.clientWidth), height: height(element), legend: { show: false }, padding: [10, 14, 0, 0],
      cursor: { points: { show: false }, y: false, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range, distr: log ? 3 : 1 } },
      axes: axes(kernel, xLabel, xValues), series: [{}, ...series], hooks: {},
    };
  }

  const height = element => (element.clientWidth < 440 ? 230 : 290);

  function progress(element, number) {
    const kernel = kernels[number];
    const axis = element.dataset.plot;
    const lines = linesOf(kernel, axis);
    if (!lines.length) return null;
    const series = lines.map(line => ({
      stroke: () => css(`--c${kernel.strategies[line.strategy].colour}`), width: line.thick ? 2.25 : 1, alpha: line.thick ? 1 : 0.35,
      paths: uPlot.paths.stepped({ align: 1 }), points: { show: false }, show: !hidden[number].has(line.strategy),
    }));
    const byTrial = axis === 'trials';
    const set = options(element, number, series, byTrial ? 'trial' : 'time since the run began', byTrial ? short : span, 0);
    set.hooks.setCursor = [u => {
      const row = u.cursor.idx;
      const parts = lines.map((line, at) => ({ line, value: row == null ? null : u.data[at + 1][row] }))
        .filter(({ line, value }) => line.thick && value != null && !hidden[number].has(line.strategy))
        .sort((a, b) => (kernel.flops > 0 ? b.value - a.value : a.value - b.value))
        .map(({ line, value }) => [kernel.strategies[line.strategy].name, short(value)]);
      const place = row == null ? '' : byTrial ? `trial ${short(u.data[0][row])}` : span(u.data[0][row]);
      say(element, place, parts);
    }];
    const plot = new uPlot(set, align(lines), element);
    plot.strategyOf = at => lines[at].strategy;
    return plot;
  }

  function candidates(element, number) {
    const kernel = kernels[number];
    const { trial, seconds, strategy } = kernel.dots;
    if (!trial.length) return null;
    const columns = kernel.strategies.map((_, place) => seconds.map((s, row) => (strategy[row] === place ? valueOf(kernel, s) : null)));
    const series = kernel.strategies.map((one, place) => ({
      paths: () => null, show: !hidden[number].has(place),
      points: { show: true, size: trial.length > 1500 ? 3 : 4.5, width: 0, fill: () => `color-mix(in srgb, ${css(`--c${one.colour}`)} 60%, transparent)`, stroke: () => 'transparent' },
    }));
    const attainable = Math.min(...kernel.roofs.map(roof => roof[0]));
    const set = options(element, number, series, 'trial', short, Number.isFinite(attainable) ? attainable : 0);
    set.hooks.draw = [u => kernel.roofs.forEach(([speed, name]) => roof(u, speed, `${name} ${short(speed)}`))];
    set.hooks.setCursor = [u => {
      const row = u.cursor.idx;
      say(element, row == null ? '' : `trial ${short(trial[row])}`, row == null ? [] : [[kernel.strategies[strategy[row]].name, `${short(valueOf(kernel, seconds[row]))} ${unitOf(kernel)}`]]);
    }];
    const plot = new uPlot(set, [trial, ...columns], element);
    plot.strategyOf = at => at;
    return plot;
  }

  // A horizontal line with its name, if it is within the plot.
  function roof(u, speed, name) {
    const { ctx, bbox } = u;
    if (speed > u.scales.y.max) return;
    const y = Math.round(u.valToPos(speed, 'y', true));
    const ratio = devicePixelRatio || 1;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = css('--fg');
    ctx.lineWidth = 1.5 * ratio;
    ctx.setLineDash([6 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.font = `${12 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = 'right';
    ctx.textBaseline = 'top';
    ctx.fillText(name, bbox.left + bbox.width - 4 * ratio, y + 4 * ratio);
    ctx.restore();
  }

  // What is under the cursor. Names come from records: they are set as text, never as markup.
  function say(element, place, parts) {
    const line = element.parentElement.querySelector('.readout');
    line.textContent = place;
    parts.slice(0, 6).forEach(([name, value]) => {
      const bold = document.createElement('b');
      bold.textContent = value;
      line.append(` · ${name} `, bold);
    });
  }

  function draw(element) {
    drawn.get(element)?.destroy();
    drawn.delete(element);
    const number = Number(element.dataset.kernel);
    const plot = element.dataset.plot === 'dots' ? candidates(element, number) : progress(element, number);
    if (plot) drawn.set(element, plot);
  }
  const redraw = chosen => [...drawn.keys()].filter(chosen).forEach(draw);

  const plots = [...document.querySelectorAll('.plot')];
  const sizes = new ResizeObserver(entries => entries.forEach(({ target }) => {
    const plot = drawn.get(target);
    if (plot && Math.abs(plot.width - target.clientWidth) > 1) plot.setSize({ width: Math.max(200, target.clientWidth), height: height(target) });
  }));
  const seen = new IntersectionObserver(entries => entries.filter(entry => entry.isIntersecting).forEach(({ target }) => {
    seen.unobserve(target);
    if (!drawn.has(target)) draw(target);
    sizes.observe(target);
  }), { rootMargin: '800px' });
  // A few are drawn at once; of many, those that are looked at.
  if (kernels.length <= 8) plots.forEach(draw);
  plots.forEach(plot => seen.observe(plot));

  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraw(() => true));
  addEventListener('beforeprint', () => {
    root.classList.add('printing');
    plots.forEach(draw);
    drawn.forEach(plot => plot.setSize({ width: 330, height: 210 }));
  });
  addEventListener('afterprint', () => {
    root.classList.remove('printing');
    redraw(() => true);
  });

  document.querySelectorAll('.chip').forEach(chip => chip.addEventListener('click', () => {
    const number = Number(chip.dataset.kernel);
    const strategy = Number(chip.dataset.strategy);
    const show = hidden[number].has(strategy);
    hidden[number][show ? 'delete' : 'add'](strategy);
    chip.setAttribute('aria-pressed', String(show));
    drawn.forEach((plot, element) => {
      if (Number(element.dataset.kernel) !== number) return;
      plot.batch(() => plot.series.forEach((_, at) => {
        if (at > 0 && plot.strategyOf(at - 1) === strategy) plot.setSeries(at, { show });
      }));
    });
  }));

  document.querySelectorAll('[data-log]').forEach(button => {
    button.hidden = false;
    button.addEventListener('click', () => {
      const number = Number(button.dataset.log.slice(1));
      logarithmic[number] = !logarithmic[number];
      button.setAttribute('aria-pressed', String(logarithmic[number]));
      redraw(element => Number(element.dataset.kernel) === number);
    });
  });

  // Pages from a disk may be refused the clipboard; then the old way.
  async function copy(element) {
    try {
      await navigator.clipboard.writeText(element.textContent);
    } catch {
      getSelection().selectAllChildren(element);
      if (!document.execCommand('copy')) return 'Selected';
      getSelection().removeAllRanges();
    }
    return 'Copied';
  }
  document.querySelectorAll('[data-copy]').forEach(button => {
    button.hidden = false;
    button.addEventListener('click', async () => {
      button.textContent = await copy(document.getElementById(button.dataset.copy));
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    });
  });
})();
