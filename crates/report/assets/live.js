// Asks for what is going on every two seconds, and draws it. All texts are set as texts.
(() => {
  'use strict';
  const EVERY = 2000;
  const root = document.documentElement;
  const main = document.getElementById('main');
  const state = document.getElementById('state');
  const css = name => getComputedStyle(root).getPropertyValue(name).trim();
  const KINDS = ['measured', 'illegal', 'build-failed', 'wrong-result', 'crashed', 'timed-out', 'device-lost'];
  const plots = new Map();
  main.className = 'live';

  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children.map(child => (child instanceof Node ? child : String(child))));
    return element;
  };
  const count = value => Number(value).toLocaleString('en');
  const short = value => (value == null ? '' : value >= 100 ? Math.round(value).toLocaleString('en') : String(+value.toPrecision(3)));
  const time = seconds => {
    if (seconds == null) return '';
    const [value, unit] = seconds >= 1 ? [seconds, 's'] : seconds >= 1e-3 ? [seconds * 1e3, 'ms'] : [seconds * 1e6, 'µs'];
    return `${value.toPrecision(4)} ${unit}`;
  };
  const span = seconds => (seconds < 120 ? `${Math.round(seconds)} s` : seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`);

  const card = (label, value, note) => make('div', {}, make('dt', {}, label), make('dd', { class: 'value' }, value), make('dd', { class: 'note' }, note || ''));
  const table = (label, heads, rows) => {
    const body = make('tbody', {}, ...rows.map(cells => make('tr', {}, ...cells)));
    const head = make('tr', {}, ...heads.map(([text, right]) => make('th', { scope: 'col', class: right ? 'n' : '' }, text)));
    return make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label }, make('table', {}, make('thead', {}, head), body));
  };
  const cell = text => make('td', {}, text);
  const number = text => make('td', { class: 'n' }, text);

  // One uPlot per place of the page, which gets new data rather than being made anew.
  function plot(key, holder, title, data, series, unit) {
    const figure = make('figure', {}, make('figcaption', {}, title, ' ', make('span', {}, unit)));
    holder.append(figure);
    let kept = plots.get(key);
    const signature = series.map(one => one.label).join('\n');
    if (kept && kept.signature !== signature) {
      kept.plot.destroy();
      kept = undefined;
    }
    const element = kept ? kept.element : make('div', { class: 'plot', role: 'img', 'aria-label': `${title}, ${unit}` });
    figure.append(element);
    if (kept) {
      kept.plot.setData(data);
      kept.seen = true;
      return;
    }
    const look = { stroke: () => css('--soft'), grid: { stroke: () => css('--line'), width: 1 }, ticks: { show: false }, font: '12px system-ui, sans-serif' };
    const options = {
      width: Math.max(240, element.clientWidth || 400), height: 220, legend: { show: false }, padding: [10, 12, 0, 0],
      cursor: { points: { show: false }, y: false, drag: { x: false, y: false } },
      scales: { x: { time: false }, y: { range: (u, low, high) => [0, (high || 1) * 1.08] } },
      axes: [{ ...look, size: 30, values: (u, splits) => splits.map(value => (value < 0 ? `-${span(-value)}` : span(value))) }, { ...look, size: 52, values: (u, splits) => splits.map(short) }],
      series: [{}, ...series.map(one => ({ label: one.label, stroke: () => css(one.colour), width: 2, fill: one.fill ? () => `color-mix(in srgb, ${css(one.colour)} 18%, transparent)` : undefined, points: { show: false }, paths: one.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined, spanGaps: true }))],
    };
    const made = new uPlot(options, data, element);
    plots.set(key, { plot: made, element, signature, seen: true });
  }

  function outcomes(holder, kinds) {
    const total = KINDS.reduce((sum, kind) => sum + kinds[kind], 0);
    if (total === 0) return;
    const bar = make('div', { class: 'stack', role: 'img', 'aria-label': 'outcomes' });
    const legend = make('ul', { class: 'legend' });
    KINDS.filter(kind => kinds[kind] > 0).forEach(kind => {
      const part = make('i', { class: kind });
      part.style.flexGrow = kinds[kind];
      bar.append(part);
      legend.append(make('li', {}, make('i', { class: kind }), `${kind} `, make('b', {}, count(kinds[kind])), make('span', {}, ` ${((100 * kinds[kind]) / total).toFixed(1)} %`)));
    });
    holder.append(bar, legend);
  }

  function drawClass(page, one, runs, workers) {
    page.append(make('h2', {}, one.class));
    const rate = one.rate == null ? '–' : one.rate >= 10 ? short(one.rate) : one.rate.toFixed(1);
    page.append(make('dl', { class: 'cards' }, card('workers', count(one.workers), one.quarantined ? `${one.quarantined} set aside` : 'of the last two minutes'), card('waiting', count(one.ready), `${count(one.leased)} held`), card('done', count(one.done), 'in all'), card('throughput', rate, 'candidates per second, last minute'), card('runs', count(one.runs), 'not over')));
    const samples = one.samples;
    const pictures = make('div', { class: 'plots' });
    page.append(pictures);
    if (samples.length > 2) {
      const x = samples.map(sample => -sample[0]);
      // Over the minute before: samples are ten seconds apart.
      const rates = samples.map((sample, at) => {
        const before = samples[Math.max(0, at - 6)];
        return at === 0 ? null : Math.max(0, (sample[1] - before[1]) / Math.max(1, before[0] - sample[0]));
      });
      plot(`rate ${one.class}`, pictures, 'Throughput', [x, rates], [{ label: 'rate', colour: '--c0', fill: true }], 'candidates per second');
      plot(`queue ${one.class}`, pictures, 'Queue', [x, samples.map(sample => sample[2]), samples.map(sample => sample[3])], [{ label: 'waiting', colour: '--c1', fill: true }, { label: 'held', colour: '--c2' }], 'waiting (filled) and held');
    }
    const drawn = runs.filter(run => run.curve && run.curve.length > 0).slice(0, 6);
    if (drawn.length > 0) {
      // Each beside its first time: operators differ by orders of magnitude.
      const lines = drawn.map(run => [...run.curve, [run.status === 'running' ? run.age : run.curve[run.curve.length - 1][0], run.curve[run.curve.length - 1][1]]]);
      const places = [...new Set(lines.flatMap(line => line.map(step => step[0])))].sort((a, b) => a - b);
      const columns = lines.map(line => {
        let at = -1;
        return places.map(place => {
          while (at + 1 < line.length && line[at + 1][0] <= place) at++;
          return at < 0 || place > line[line.length - 1][0] ? null : line[0][1] / line[at][1];
        });
      });
      plot(`curves ${one.class}`, pictures, 'Best so far', [places, ...columns], drawn.map((run, place) => ({ label: run.run, colour: `--c${place}`, stepped: true })), 'times as fast as the first candidate, by time since the run began');
    }
    page.append(make('h3', {}, 'Outcomes'));
    outcomes(page, one.outcomes);
    if (runs.length > 0) {
      page.append(make('h3', {}, 'Runs'));
      page.append(table('runs', [['run'], ['operator'], ['strategy'], ['by'], ['status'], ['done', 1], ['waiting', 1], ['held', 1], ['best', 1], ['since', 1]], runs.map(run => {
        const place = drawn.indexOf(run);
        const sizes = Object.entries(run.sizes).map(([name, size]) => `${name}=${size}`).join(', ');
        const name = cell(run.run);
        if (place >= 0) name.prepend(make('span', { class: `swatch c${place}` }));
        return [name, make('td', {}, `${run.def} `, make('span', { class: 'unit' }, sizes)), cell(run.strategy), cell(run.owner), cell(run.status), number(count(run.done)), number(count(run.waiting)), number(count(run.held)), number(time(run.best)), number(span(run.age))];
      })));
    }
    if (workers.length > 0) {
      page.append(make('h3', {}, 'Workers'));
      page.append(table('workers', [['worker'], ['state'], ['held', 1], ['done', 1], ['seen', 1], ['GFLOP/s', 1], ['why']], workers.slice(0, 200).map(worker => {
        const done = KINDS.reduce((sum, kind) => sum + worker.outcomes[kind], 0);
        const word = worker.state === 'set aside' ? 'aside' : worker.state;
        return [cell(worker.name), make('td', { class: `state ${word}` }, make('i'), worker.state), number(count(worker.held)), number(count(done)), number(`${span(worker.seen)} ago`), number(short(worker.probe)), make('td', { class: 'reason' }, worker.reason || '')];
      })));
      if (workers.length > 200) page.append(make('p', { class: 'note' }, `and ${count(workers.length - 200)} more workers`));
    }
  }

  function draw(data) {
    plots.forEach(kept => { kept.seen = false; });
    const page = document.createDocumentFragment();
    page.append(make('h1', {}, data.classes.length === 1 ? 'One class of machines' : `${data.classes.length} classes of machines`));
    data.classes.forEach(one => drawClass(page, one, data.runs.filter(run => run.class === one.class), data.workers.filter(worker => worker.class === one.class)));
    main.replaceChildren(page);
    plots.forEach((kept, key) => {
      if (!kept.seen) {
        kept.plot.destroy();
        plots.delete(key);
      } else {
        kept.plot.setSize({ width: Math.max(240, kept.element.parentElement.clientWidth), height: 220 });
      }
    });
  }

  async function ask() {
    try {
      const answer = await fetch('data.json', { cache: 'no-store' });
      const data = await answer.json();
      if (data.error) throw new Error(data.error);
      if (!document.hidden) draw(data);
      state.textContent = `as of ${new Date().toLocaleTimeString()}`;
      state.className = 'made';
    } catch (error) {
      state.textContent = `no answer: ${error.message}`;
      state.className = 'made trouble';
    }
    setTimeout(ask, EVERY);
  }
  ask();
})();
