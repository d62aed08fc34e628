// The viewer of attention maps: ordinary controls choose a map, Vega draws it. Runs after Vega's modules (see vega_program in page.cpp).
'use strict';

// Without eval, so that the page's policy can forbid it.
function makeView(container, state) {
  const spec = {
    padding: 4,
    autosize: {type: 'pad', resize: true},
    signals: [
      {name: 'dark', value: state.dark},
      {name: 'cell', value: 12},
      {name: 'queries', value: []},
      {name: 'keys', value: []},
      {name: 'exponent', value: 1},
      {name: 'cursor', value: {q: -1, k: -1}},
      {name: 'ink', update: "dark ? '#e6e8eb' : '#1a1c20'"},
      {name: 'width', update: 'cell * length(keys)'},
      {name: 'height', update: 'cell * length(queries)'},
      {name: 'font', update: 'clamp(cell - 2, 8, 12)'},
    ],
    data: [{name: 'cells', values: []}],
    scales: [
      {name: 'x', type: 'band', domain: {signal: 'sequence(length(keys))'}, range: 'width'},
      {name: 'y', type: 'band', domain: {signal: 'sequence(length(queries))'}, range: 'height'},
      {
        name: 'colour', type: 'pow', exponent: {signal: 'exponent'}, domain: [0, 1], clamp: true, interpolate: 'lab',
        range: {signal: "dark ? ['#1d2026', '#1f5f94', '#62b5ec', '#f4f8c0'] : ['#f5f6f8', '#9ccbe8', '#2178b4', '#08254d']"},
      },
    ],
    axes: ['x', 'y'].map(side => ({
      scale: side, orient: side === 'x' ? 'top' : 'left', title: side === 'x' ? 'key: looked at' : 'query: looks',
      ticks: false, domain: false, labelPadding: 3, titleColor: {signal: 'ink'}, titleFontSize: 12, titleFontWeight: 'normal', titlePadding: 8,
      encode: {labels: {update: {
        text: {signal: `${side === 'x' ? 'keys' : 'queries'}[datum.value]`}, fill: {signal: 'ink'}, fontSize: {signal: 'font'},
        ...(side === 'x' ? {angle: {value: -60}, align: {value: 'left'}, baseline: {value: 'middle'}} : {}),
      }}},
    })),
    legends: [{
      fill: 'colour', title: 'weight', orient: 'bottom', direction: 'horizontal', gradientLength: 160, gradientThickness: 10, format: '.2~f',
      labelColor: {signal: 'ink'}, titleColor: {signal: 'ink'}, titleFontWeight: 'normal',
    }],
    marks: [
      {
        name: 'map', type: 'rect', from: {data: 'cells'}, aria: false,
        encode: {update: {
          x: {scale: 'x', field: 'k'}, width: {signal: 'cell'}, y: {scale: 'y', field: 'q'}, height: {signal: 'cell'},
          fill: {scale: 'colour', field: 'w'},
        }},
      },
      {
        type: 'rect', interactive: false, aria: false,
        encode: {update: {
          x: {signal: 'cursor.k * cell'}, y: {signal: 'cursor.q * cell'}, width: {signal: 'cell'}, height: {signal: 'cell'},
          stroke: {signal: "dark ? '#ff8b3d' : '#d55e00'"}, strokeWidth: {signal: 'cursor.q < 0 ? 0 : 2.5'},
        }},
      },
    ],
  };
  const runtime = vega.parse(spec, {}, {ast: true});
  return new vega.View(runtime, {expr: vega.expressionInterpreter, renderer: 'svg', container, hover: false, logLevel: vega.Warn});
}

function startViewer(section) {
  const maps = JSON.parse(section.querySelector('script[type="application/json"]').textContent);
  const control = Object.fromEntries([...section.querySelectorAll('[data-choose]')].map(element => [element.dataset.choose, element]));
  const picture = section.querySelector('.map'), readout = section.querySelector('.readout'), stepName = section.querySelector('.step');
  const theme = window.matchMedia('(prefers-color-scheme: dark)');
  const view = makeView(picture, {dark: theme.matches});
  const cursor = {q: -1, k: -1};
  let map;

  const visible = token => token === '' ? '∅' : token.replace(/\n/g, '⏎').replace(/\t/g, '⇥').replace(/^ +$/, s => '␣'.repeat(s.length));
  const short = token => token.length > 14 ? token.slice(0, 13) + '…' : token;

  function fillSelect(select, names) {
    const before = select.selectedIndex;
    select.replaceChildren(...names.map((name, i) => new Option(name, i)));
    select.selectedIndex = Math.min(Math.max(before, 0), names.length - 1);
  }

  // What can be chosen depends on what was chosen before: arm, then step, then layer, then head and example.
  function offer() {
    const arm = maps.arms[control.arm.selectedIndex];
    control.step.max = arm.steps.length - 1;
    const step = arm.steps[control.step.value];
    stepName.textContent = step.step;
    control.step.setAttribute('aria-valuetext', `step ${step.step}`);
    fillSelect(control.layer, step.layers.map(layer => layer.name.replace(/(\d+)/g, ' $1')));
    const layer = step.layers[control.layer.selectedIndex];
    fillSelect(control.head, Array.from({length: layer.heads}, (_, head) => head));
    fillSelect(control.example, step.examples.map((text, i) => `${i + 1}: ${maps.texts[text].map(visible).join(' ').slice(0, 40)}`));
  }

  function load() {
    const arm = maps.arms[control.arm.selectedIndex], step = arm.steps[control.step.value];
    const layer = step.layers[control.layer.selectedIndex], example = control.example.selectedIndex;
    layer.bytes ??= Uint8Array.from(atob(layer.weights), letter => letter.charCodeAt(0));
    const start = (example * layer.heads + control.head.selectedIndex) * layer.queries * layer.keys;
    const text = maps.texts[step.examples[example]].map(visible);
    const token = i => text[i] ?? String(i);
    map = {
      queries: Array.from({length: layer.queries}, (_, i) => token(i)), keys: Array.from({length: layer.keys}, (_, i) => token(i)),
      weight: (q, k) => layer.bytes[start + q * layer.keys + k] / 255,
    };
    map.cells = map.queries.flatMap((_, q) => map.keys.map((_, k) => ({q, k, w: map.weight(q, k)})));
  }

  function fit() {
    const room = picture.clientWidth - 130;
    view.signal('cell', Math.max(9, Math.min(20, Math.floor(room / map.keys.length))));
  }

  async function draw() {
    offer();
    load();
    fit();
    if (cursor.q >= map.queries.length || cursor.k >= map.keys.length) cursor.q = cursor.k = -1;
    view.signal('queries', map.queries.map(short)).signal('keys', map.keys.map(short)).signal('exponent', control.small.checked ? 0.5 : 1);
    view.data('cells', map.cells);
    await point(cursor.q, cursor.k);
    const arm = maps.arms[control.arm.selectedIndex];
    picture.setAttribute('aria-label', `Attention weights of ${arm.name}, ${control.layer.selectedOptions[0].text}, head ${control.head.value}, ` +
      `step ${stepName.textContent}, example ${control.example.selectedIndex + 1}: ${map.queries.length} queries by ${map.keys.length} keys. ` +
      'Arrow keys move over the cells.');
    section.dataset.drawn = Number(section.dataset.drawn ?? 0) + 1;
  }

  function point(q, k) {
    cursor.q = q;
    cursor.k = k;
    if (q < 0) {
      readout.textContent = 'Point at a cell, or move with the arrow keys.';
    } else {
      const weight = map.weight(q, k);
      readout.textContent = `“${map.queries[q]}” (place ${q}) looks at “${map.keys[k]}” (place ${k}) with weight ` +
        (weight === 0 ? 'below 0.002' : weight.toFixed(3));
    }
    return view.signal('cursor', {q, k}).runAsync();
  }

  for (const element of Object.values(control)) element.addEventListener('input', draw);
  view.addEventListener('mousemove', (_, item) => { if (item?.mark.name === 'map') point(item.datum.q, item.datum.k); });
  view.addEventListener('click', (_, item) => { if (item?.mark.name === 'map') point(item.datum.q, item.datum.k); });
  const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
  picture.addEventListener('keydown', event => {
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const within = (at, count) => Math.min(Math.max(at, 0), count - 1);
    point(within(cursor.q + move[0], map.queries.length), within(cursor.k + move[1], map.keys.length));
  });
  theme.addEventListener('change', () => view.signal('dark', theme.matches).runAsync());
  window.addEventListener('resize', () => { fit(); view.runAsync(); });
  fillSelect(control.arm, maps.arms.map(arm => arm.seed === null ? arm.name : `${arm.name}, seed ${arm.seed}`));
  control.step.max = maps.arms[0].steps.length - 1;
  control.step.value = control.step.max;
  draw();
}

for (const section of document.querySelectorAll('.viewer')) startViewer(section);
