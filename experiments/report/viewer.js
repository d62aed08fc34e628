// The viewer of attention maps: ordinary controls choose what is shown, and an SVG of it is made, so that what is seen is sharp in print
// and can be saved as it is.
'use strict';

const looks = {
  light: {paper: '#ffffff', ink: '#1a1c20', soft: '#575d66', mark: '#d55e00', ramp: ['#f5f6f8', '#9ccbe8', '#2178b4', '#08254d']},
  dark: {paper: '#14161a', ink: '#e6e8eb', soft: '#a3a9b3', mark: '#ff8b3d', ramp: ['#1d2026', '#1f5f94', '#62b5ec', '#f4f8c0']},
};
const shades = 48;
const scales = ['each head by its own maximum', 'the same for all, 0 to 1', 'logarithmic, 0.001 to 1'];
const fontSize = 11, nameSize = 12;  // pixels; labels are never smaller
const family = 'system-ui, sans-serif';

const escaped = text => String(text).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
const mark = c => 'U+' + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
const visible = token => token === '' ? '∅' : token.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, mark).replace(/\n/g, '⏎').replace(/\t/g, '⇥').replace(/^ +$/, s => '␣'.repeat(s.length));
const short = token => token.length > 14 ? token.slice(0, 13) + '…' : token;
const ruler = document.createElement('canvas').getContext('2d');
function widest(texts, size) {
  ruler.font = `${size}px ${family}`;
  return Math.max(0, ...texts.map(text => ruler.measureText(text).width));
}

/// A share 0 … 1 of the ramp's colours.
function colour(look, share) {
  const at = Math.min(Math.max(share, 0), 1) * (look.ramp.length - 1), from = Math.min(Math.floor(at), look.ramp.length - 2);
  const part = (hex, i) => parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16);
  const mixed = [0, 1, 2].map(i => Math.round(part(look.ramp[from], i) + (at - from) * (part(look.ramp[from + 1], i) - part(look.ramp[from], i))));
  return '#' + mixed.map(value => value.toString(16).padStart(2, '0')).join('');
}

/// Where a weight lies on the ramp.
function share(weight, peak, scale) {
  if (scale === 2) return weight <= 0 ? 0 : Math.max(0, 1 + Math.log10(weight) / 3);
  return scale === 1 ? weight : peak > 0 ? weight / peak : 0;
}

/// A picture of the page's data, channels of bytes, as an image: grey, or red, green and blue.
function pictureUrl(picture) {
  if (picture.url) return picture.url;
  const bytes = Uint8Array.from(atob(picture.pixels), letter => letter.charCodeAt(0)), size = picture.width * picture.height;
  const canvas = Object.assign(document.createElement('canvas'), {width: picture.width, height: picture.height});
  const context = canvas.getContext('2d'), image = context.createImageData(picture.width, picture.height);
  for (let i = 0; i < size; ++i) {
    for (let c = 0; c < 3; ++c) image.data[4 * i + c] = bytes[Math.min(c, picture.channels - 1) * size + i];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return picture.url = canvas.toDataURL('image/png');
}

/// The maps of one arm at a step, layer and example: a panel a head.
function group(maps, arm, wanted, layerNumber, exampleNumber) {
  const step = arm.steps.findLast(step => step.step <= wanted) ?? arm.steps[0];
  const layer = step.layers[layerNumber], example = step.examples[exampleNumber];
  if (!layer || !example) return null;
  layer.bytes ??= Uint8Array.from(atob(layer.weights), letter => letter.charCodeAt(0));
  const axis = side => {
    const part = layer.of[side], here = side === 0 ? layer.queries : layer.keys, text = example[part]?.text === undefined ? null : example[part];
    const tokens = text ? maps.texts[text.text].slice(0, here).map(visible) : Array.from({length: here}, (_, i) => String(i));
    const known = Object.keys(example).length > 1 && part === 'inputs' ? 'target' : part;
    return {part: known || 'places', tokens, whole: text ? text.length : layer.places[side]};
  };
  const queries = axis(0), keys = axis(1), seen = example[layer.of[1]]?.picture;
  const picture = layer.across && seen !== undefined ? {...maps.pictures[seen], url: pictureUrl(maps.pictures[seen]), across: layer.across} : null;
  if (picture) {
    const rows = layer.places[1] / picture.across;
    keys.tokens = keys.tokens.map((_, k) => `row ${1 + Math.floor(k / picture.across)}, column ${1 + k % picture.across} of ${rows} × ${picture.across}`);
    queries.written = queries.tokens.map((_, q) => queries.tokens[q + 1] ?? (queries.tokens.length < queries.whole ? '…' : '<eos>'));
  }
  const heads = Array.from({length: layer.heads}, (_, head) => {
    const map = exampleNumber * layer.heads + head, peak = layer.peaks[map];
    return {name: `head ${head}`, peak, weight: (q, k) => (layer.bytes[(map * layer.queries + q) * layer.keys + k] / 255) ** 2 * peak};
  });
  return {arm, step: step.step, layer: layer.name, queries, keys, heads, picture};
}

/// A text in lines that fit into a width.
function lines(text, width, size) {
  const found = [''];
  for (const word of text.split(' ')) {
    const longer = found.at(-1) === '' ? word : `${found.at(-1)} ${word}`;
    if (widest([longer], size) * 1.05 > width && found.at(-1) !== '') found.push(word);
    else found[found.length - 1] = longer;
  }
  return found;
}

/// "rows: queries, target, as it is read, 64 of 128 tokens · columns: keys, source"
function told({queries, keys, heads}, every) {
  const count = axis => axis.tokens.length < axis.whole ? `, ${axis.tokens.length} of ${axis.whole} tokens` : '';
  const name = axis => (axis.part === 'target' ? 'target, as it is read' : axis.part) + count(axis);
  const named = every > 1 ? ` · one label in ${every} is shown${heads.length > 1 ? ', all of them of a single head' : ''}` : '';
  return `rows: queries, ${name(queries)} · columns: keys, ${name(keys)}${named}`;
}

/// Sizes of a group's panels in a picture of a width: as many side by side as have room for every label, four on a wide page; fewer where
/// even the smallest cells would not fit. A single head has labels of all tokens as long as they fit.
function layout(group, width) {
  const left = widest(group.queries.tokens.map(short), fontSize) + 12, gap = 14, n = group.queries.tokens.length, m = group.keys.tokens.length;
  const names = widest(group.keys.tokens.map(short), fontSize) * 0.87 + 14;
  const room = width - left - names / 2, roomy = Math.floor((room + gap) / (m * 13 + gap));
  const fitting = Math.max(1, Math.floor((room + gap) / (m * 4 + gap)));
  const most = Math.min(group.heads.length, fitting, Math.max(1, roomy, width > 600 ? 4 : 2)), rows = Math.ceil(group.heads.length / most);
  const across = Math.ceil(group.heads.length / rows);
  const cell = Math.max(group.heads.length > 1 || m * 13 > room ? 4 : 13, Math.min(20, Math.floor(((room + gap) / across - gap) / m)));
  return {left, gap, names, across, cell, panel: m * cell + gap, row: nameSize + 8 + names + n * cell + 12, every: Math.ceil(12 / cell)};
}

/// The shades of a panel, a path each: the lowest is the ground.
function cells(group, head, cell, look, scale) {
  const paths = Array.from({length: shades}, () => '');
  group.queries.tokens.forEach((_, q) => group.keys.tokens.forEach((_, k) => {
    const shade = Math.round(share(head.weight(q, k), head.peak, scale) * (shades - 1));
    if (shade > 0) paths[shade] += `M${k * cell} ${q * cell}h${cell}v${cell}h${-cell}z`;
  }));
  const ground = `<path class="cells" d="M0 0h${group.keys.tokens.length * cell}v${group.queries.tokens.length * cell}H0z" fill="${colour(look, 0)}"/>`;
  return ground + paths.map((path, shade) => path && `<path class="cells" d="${path}" fill="${colour(look, shade / (shades - 1))}"/>`).join('');
}

/// The picture of a group, once as it is and then under the weights of each word: as an SVG from a height on, where its fields lie, and
/// how high that is.
function pictures(group, head, top, width, look, scale) {
  const {picture, queries, keys} = group, gap = 12, wide = width > 600 ? 120 : 92, high = wide * picture.height / picture.width;
  const across = Math.max(1, Math.floor((width - 4 + gap) / (wide + gap))), count = queries.tokens.length + 1;
  const rows = keys.whole / picture.across, cell = [wide / picture.across, high / rows];
  const corner = i => [2 + i % across * (wide + gap), top + Math.floor(i / across) * (high + nameSize + 16)];
  const field = (q, k) => [corner(q + 1)[0] + k % picture.across * cell[0], corner(q + 1)[1] + Math.floor(k / picture.across) * cell[1], ...cell];
  let body = '';
  for (let i = 0; i < count; ++i) {
    const [x, y] = corner(i), q = i - 1;
    body += `<image x="${x}" y="${y}" width="${wide}" height="${high}" href="${picture.url}" preserveAspectRatio="none" style="image-rendering:pixelated"/>`;
    body += text(x + wide / 2, y + high + nameSize + 2, q < 0 ? 'the picture' : short(queries.written[q]), look, `text-anchor="middle" font-weight="${q < 0 ? 400 : 600}"`, nameSize);
    if (q >= 0) keys.tokens.forEach((_, k) => {
      const bright = Math.min(1, share(head.weight(q, k), head.peak, scale)), [left, up, w, h] = field(q, k);
      body += `<path d="M${left} ${up}h${w}v${h}h${-w}z" fill="#000" fill-opacity="${(0.75 * (1 - bright)).toFixed(3)}"/>`;
      if (bright > 0.05) body += `<path d="M${left + 1} ${up + 1}h${w - 2}v${h - 2}h${2 - w}z" fill="none" stroke="${look.mark}" stroke-width="2" stroke-opacity="${bright.toFixed(3)}"/>`;
    });
    body += `<path d="M${x} ${y}h${wide}v${high}h${-wide}z" fill="none" stroke="${look.soft}"/>`;
  }
  const find = (x, y) => {
    for (let q = 0; q < queries.tokens.length; ++q) {
      const [left, up] = corner(q + 1), column = Math.floor((x - left) / cell[0]), row = Math.floor((y - up) / cell[1]);
      if (x >= left && y >= up && column < picture.across && row < rows) return [q, row * picture.across + column];
    }
    return null;
  };
  const last = corner(count - 1);
  return {body, box: field, find, right: corner(Math.min(across, count) - 1)[0] + wide, bottom: last[1] + high + nameSize + 16};
}

const text = (x, y, content, look, more = '', size = fontSize) =>
  `<text x="${x}" y="${y}" font-size="${size}" fill="${look.ink}" ${more}>${escaped(content)}</text>`;

function legend(x, y, look, scale) {
  const ramp = Array.from({length: shades}, (_, i) => `<rect x="${x + i * 4}" y="${y}" width="4.5" height="10" fill="${colour(look, i / (shades - 1))}"/>`);
  const ticks = scale === 2 ? ['0.001', '0.01', '0.1', '1'] : scale === 1 ? ['0', '0.5', '1'] : ['0', 'half', 'maximum'];
  const labels = ticks.map((tick, i) => text(x + i / (ticks.length - 1) * shades * 4, y + 23, tick, look,
                                             `text-anchor="${i === 0 ? 'start' : i === ticks.length - 1 ? 'end' : 'middle'}"`));
  return text(x, y - 6, `weight: ${scales[scale]}`, look) + ramp.join('') + labels.join('');
}

/// The groups below each other as an SVG, and where its panels lie.
function drawn(groups, width, look, scale) {
  const panels = [];
  let body = '', y = 6, right = 250;  // of the legend
  for (const group of groups) {
    const {left, gap, names, across, cell, panel, row, every} = layout(group, width);
    const written = (line, more, size) => {
      body += text(0, y += 14, line, look, more, size);
      right = Math.max(right, widest([line], size) * 1.05);
    };
    for (const line of lines(`${group.arm.name}, ${group.layer}, step ${group.step}`, width / 1.1, nameSize + 1))
      written(line, 'font-weight="600"', nameSize + 1);
    if (group.picture) {
      y += 10;
      for (const head of group.heads) {
        if (group.heads.length > 1) body += text(2, y += 10, head.name, look, 'font-weight="600"', nameSize);
        const shown = pictures(group, head, y + 6, width, look, scale);
        body += shown.body;
        panels.push({group, head, box: shown.box, find: shown.find});
        right = Math.max(right, shown.right);
        y = shown.bottom;
      }
      continue;
    }
    y += 2;
    for (const line of lines(told(group, every), width, fontSize)) written(line, '', fontSize);
    group.heads.forEach((head, i) => {
      const x = left + i % across * panel, top = y + Math.floor(i / across) * row + nameSize + 8 + names;
      const name = `${head.name}, max ${head.peak.toFixed(2)}`, fits = across === 1 || widest([name], nameSize) * 1.15 < panel;
      body += text(x, top - names - 2, scale === 0 && fits ? name : head.name, look, 'font-weight="600"', nameSize);
      group.keys.tokens.forEach((token, k) => {
        const at = `${x + (k + 0.5) * cell},${top - 4}`;
        if (k % every === 0) body += text(...at.split(','), short(token), look, `transform="rotate(-60 ${at})" dominant-baseline="middle"`);
      });
      if (i % across === 0) group.queries.tokens.forEach((token, q) => {
        if (q % every === 0) body += text(x - 5, top + (q + 0.5) * cell, short(token), look, 'text-anchor="end" dominant-baseline="central"');
      });
      body += `<g transform="translate(${x} ${top})" shape-rendering="crispEdges">${cells(group, head, cell, look, scale)}</g>`;
      panels.push({group, head, box: (q, k) => [x + k * cell, top + q * cell, cell, cell], find: (at, down) => [Math.floor((down - top) / cell), Math.floor((at - x) / cell)]});
      right = Math.max(right, x + panel - gap + names / 2);
    });
    y += Math.ceil(group.heads.length / across) * row + 10;
  }
  body += groups.some(group => !group.picture) ? legend(2, y + 18, look, scale)
    : text(2, y + 14, 'Bright and framed: attended to when the word was written.', look) + text(2, y + 30, `Weight: ${scales[scale]}.`, look);
  width = Math.ceil(right + 4);
  const height = Math.ceil(y + 48);
  return {panels, width, height, svg: `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
                                      `font-family="${family}"><rect width="100%" height="100%" fill="${look.paper}"/>${body}</svg>`};
}

function save(name, url) {
  Object.assign(document.createElement('a'), {download: name, href: url}).click();
}

/// At 300 dots an inch of print.
function savePng(name, picture) {
  const image = new Image(), canvas = Object.assign(document.createElement('canvas'), {width: picture.width * 3, height: picture.height * 3});
  image.onload = () => {
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    save(name, canvas.toDataURL('image/png'));
  };
  image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(picture.svg);
}

function startViewer(section) {
  const maps = JSON.parse(section.querySelector('script[type="application/json"]').textContent);
  const control = Object.fromEntries([...section.querySelectorAll('[data-choose]')].map(element => [element.dataset.choose, element]));
  const picture = section.querySelector('.map'), readout = section.querySelector('.readout'), stepName = section.querySelector('.step');
  const theme = window.matchMedia('(prefers-color-scheme: dark)');
  const cursor = {q: -1, k: -1, panel: 0};
  let steps = [], groups = [], shown, printing = false, scaleChosen = false;

  function fillSelect(select, names) {
    const before = select.selectedIndex;
    select.replaceChildren(...names.map((name, i) => new Option(name, i)));
    select.selectedIndex = Math.min(Math.max(before, 0), names.length - 1);
  }

  const armNames = maps.arms.map(arm => arm.seed === null ? arm.name : `${arm.name}, seed ${arm.seed}`);
  const arms = () => control.arm.selectedIndex < maps.arms.length ? [maps.arms[control.arm.selectedIndex]] : maps.arms;

  // What can be chosen depends on what was chosen before: arm, then step, then layer, then head and example.
  function offer() {
    const before = steps[control.step.value];
    steps = [...new Set(arms().flatMap(arm => arm.steps.map(step => step.step)))].sort((a, b) => a - b);
    control.step.max = steps.length - 1;
    const same = steps.indexOf(before);
    control.step.value = same >= 0 ? same : steps.length - 1;
    stepName.textContent = steps[control.step.value];
    control.step.setAttribute('aria-valuetext', `step ${stepName.textContent}`);
    const step = arms()[0].steps.findLast(step => step.step <= steps[control.step.value]) ?? arms()[0].steps[0];
    fillSelect(control.layer, step.layers.map(layer => layer.name));
    const layer = step.layers[control.layer.selectedIndex];
    fillSelect(control.head, ['all', ...Array.from({length: layer.heads}, (_, head) => head)]);
    fillSelect(control.example, step.examples.map((example, i) => {
      const part = example.source ?? example.inputs ?? Object.values(example)[0];
      return `${i + 1}: ${part ? maps.texts[part.text].map(visible).join(' ').slice(0, 40) : ''}`;
    }));
  }

  function load() {
    groups = arms().map(arm => group(maps, arm, steps[control.step.value], control.layer.selectedIndex, control.example.selectedIndex)).filter(Boolean);
    const head = control.head.selectedIndex - 1;
    if (head >= 0) for (const each of groups) each.heads = each.heads.slice(head, head + 1);
    // What attends to itself often has a row with one key to attend to, whose weight hides all others.
    if (!scaleChosen) control.scale.selectedIndex = groups[0].queries.part === groups[0].keys.part ? 2 : 0;
  }

  function paint() {
    const look = theme.matches && !printing ? looks.dark : looks.light;
    shown = drawn(groups, picture.clientWidth || 800, look, control.scale.selectedIndex);
    picture.innerHTML = shown.svg;
    for (const panel of shown.panels) {
      panel.mark = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
      for (const [name, value] of Object.entries({class: 'cursor', fill: 'none', stroke: look.mark, 'stroke-width': 2, visibility: 'hidden'}))
        panel.mark.setAttribute(name, value);
      picture.firstElementChild.append(panel.mark);
    }
    point(cursor.panel, cursor.q, cursor.k);
  }

  function draw() {
    offer();
    load();
    paint();
    const first = groups[0];
    picture.setAttribute('aria-label', `Attention weights of ${groups.map(each => each.arm.name).join(', ')}, ${first.layer}, step ${stepName.textContent}, ` +
      `example ${control.example.selectedIndex + 1}: ${first.queries.tokens.length} queries by ${first.keys.tokens.length} keys. Arrow keys move over the cells.`);
    section.dataset.drawn = Number(section.dataset.drawn ?? 0) + 1;
  }

  // A cell of one panel is marked in all panels of its group, and read in all of them.
  function point(number, q, k) {
    const panel = shown.panels[number] ?? shown.panels[0], {queries, keys} = panel.group;
    if (q >= queries.tokens.length || k >= keys.tokens.length) q = k = -1;
    Object.assign(cursor, {q, k, panel: shown.panels.indexOf(panel)});
    for (const each of shown.panels) {
      const within = q >= 0 && each.group === panel.group;
      each.mark.setAttribute('visibility', within ? 'visible' : 'hidden');
      if (within) each.box(q, k).forEach((value, i) => each.mark.setAttribute(['x', 'y', 'width', 'height'][i], value));
    }
    const weights = panel.group.heads.map(head => (panel.group.heads.length > 1 ? `${head.name} ` : '') + head.weight(q, k).toFixed(3));
    readout.textContent = q < 0 ? 'Point at a cell, or move with the arrow keys.' :
      queries.written ? `“${queries.written[q]}” (word ${q + 1}) attended to ${keys.tokens[k]} with weight ${weights.join(', ')}` :
      `“${queries.tokens[q]}” (position ${q}) attends to “${keys.tokens[k]}” (position ${k}) with weight ${weights.join(', ')}`;
  }

  function pointAt(event) {
    const box = picture.firstElementChild.getBoundingClientRect(), scale = shown.width / box.width;
    const x = (event.clientX - box.x) * scale, y = (event.clientY - box.y) * scale;
    shown.panels.forEach((panel, i) => {
      const [q, k] = panel.find(x, y) ?? [-1, -1];
      if (q >= 0 && k >= 0 && q < panel.group.queries.tokens.length && k < panel.group.keys.tokens.length) point(i, q, k);
    });
  }

  function fileName(kind) {
    return [groups.map(each => each.arm.name).join('-'), control.layer.selectedOptions[0].text, `step ${stepName.textContent}`,
            `example ${control.example.selectedIndex + 1}`].join(' ').replace(/[^\p{L}\p{N}.]+/gu, '-').slice(0, 120) + '.' + kind;
  }

  control.scale.addEventListener('input', () => { scaleChosen = true; });
  for (const element of Object.values(control)) element.addEventListener('input', draw);
  section.querySelector('[data-save=png]').addEventListener('click', () => savePng(fileName('png'), shown));
  section.querySelector('[data-save=svg]').addEventListener('click', () =>
    save(fileName('svg'), 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(shown.svg)));
  picture.addEventListener('mousemove', pointAt);
  picture.addEventListener('click', pointAt);
  const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
  picture.addEventListener('keydown', event => {
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const {queries, keys} = (shown.panels[cursor.panel] ?? shown.panels[0]).group;
    const within = (at, count) => Math.min(Math.max(at, 0), count - 1);
    point(cursor.panel, within(cursor.q + move[0], queries.tokens.length), within(cursor.k + move[1], keys.tokens.length));
  });
  theme.addEventListener('change', paint);
  window.addEventListener('resize', paint);
  window.addEventListener('beforeprint', () => { printing = true; paint(); });
  window.addEventListener('afterprint', () => { printing = false; paint(); });
  fillSelect(control.arm, maps.arms.length > 1 ? [...armNames, 'all, one below the other'] : armNames);
  fillSelect(control.scale, scales);
  draw();
}

for (const section of document.querySelectorAll('.viewer')) startViewer(section);
