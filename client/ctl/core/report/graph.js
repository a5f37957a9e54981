// ---- the graph of operations: an arrow is a tensor, from the operation that wrote it last to one that reads it

const GRAPH_MOST = 120, NODE = {wide: 172, high: 38, across: 188, down: 70};

function rootOf(handle) {
	let tensor = byHandle.get(handle);
	while (tensor && tensor.base) tensor = tensor.base;
	return tensor;
}

// Of each tensor those that wrote it, from the last on that wrote all of it: writes by views are of a part.
function findSources() {
	const writers = new Map();
	for (const one of operations) {
		one.sources = [];
		for (const [, handle, writes] of one.tensors)
			if (!writes) for (const from of writers.get(rootOf(handle)) || []) one.sources.push({from, tensor: byHandle.get(handle)});
		for (const [, handle, writes] of one.tensors) {
			const root = rootOf(handle);
			if (!writes || !root) continue;
			const isPart = byHandle.get(handle) !== root;
			writers.set(root, [...(isPart && writers.get(root) || []).slice(-15), one]);
		}
	}
}

// Rows of operations: each below all that it reads from; one that reads from none right above its first reader.
function layers(shown) {
	const depth = new Map(), readers = new Map();
	for (const one of shown) {
		const sources = one.sources.filter(({from}) => depth.has(from));
		depth.set(one, sources.reduce((most, {from}) => Math.max(most, depth.get(from) + 1), 0));
		for (const {from} of sources) readers.set(from, [...readers.get(from) || [], one]);
	}
	for (const one of shown)
		if (!depth.get(one) && readers.has(one)) depth.set(one, Math.min(...readers.get(one).map(reader => depth.get(reader))) - 1);
	const rows = [];
	for (const one of shown) (rows[depth.get(one)] ||= []).push(one);
	return rows.filter(Boolean);
}

// Each at about the middle of what it reads from.
function places(rows) {
	const at = new Map();
	rows.forEach((row, y) => {
		const middle = one => {
			const xs = one.sources.filter(({from}) => at.has(from)).map(({from}) => at.get(from).x);
			return xs.length ? xs.reduce((sum, x) => sum + x, 0) / xs.length : Infinity;
		};
		row.map(one => [middle(one), one]).sort(([a], [b]) => a === b ? 0 : a - b)
			.forEach(([, one], x) => at.set(one, {x: 4 + x * NODE.across, y: 4 + y * NODE.down}));
	});
	return at;
}

function arrow(from, to, tensor) {
	const x1 = from.x + NODE.wide / 2, y1 = from.y + NODE.high, x2 = to.x + NODE.wide / 2, y2 = to.y, bend = (y2 - y1) / 2;
	return el('g', {class: 'arrow', stroke: tensor ? colour(tensor) : 'currentColor'},
		el('title', {}, tensor ? `${describe(tensor)}: ${formatOf(tensor.place)} ${shapeOf(tensor.place)}` : 'a tensor'),
		el('path', {d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}M${x2 - 4} ${y2 - 7}L${x2} ${y2}L${x2 + 4} ${y2 - 7}`}));
}

const clipped = text => text.length > 24 ? `${text.slice(0, 23)}…` : text;

// DMA says of which tensor.
function title(one) {
	const tensor = one.queue === 'dma' && one.tensors.length === 1 && byHandle.get(one.tensors[0][1]);
	return tensor ? `${called(one)} ${describe(tensor)}` : called(one);
}

function node(one, {x, y}) {
	const said = [span(one.took) || one.queue, one.saturated && `${one.saturated} saturated`, one.wrapped && `${one.wrapped} wrapped`];
	return el('g', {class: `node ${one.queue}${String(one.id) === state.operation ? ' picked' : ''}`,
		onclick: () => change({operation: one.id, tensor: null, request: null})},
	el('title', {}, `${title(one)}, request ${one.request}`), el('rect', {x, y, width: NODE.wide, height: NODE.high, rx: 4}),
	el('text', {x: x + 8, y: y + 16}, clipped(title(one))),
	el('text', {x: x + 8, y: y + 31, class: one.saturated || one.wrapped ? 'warn' : 'faint'}, clipped(said.filter(Boolean).join(' · '))));
}

function drawGraph(items) {
	const picked = items.findIndex(one => String(one.id) === state.operation);
	const asked = state.from ?? Math.max(0, picked), first = Math.min(asked, Math.max(0, items.length - 1));
	const begins = first - first % GRAPH_MOST, shown = items.slice(begins, begins + GRAPH_MOST);
	const rows = layers(shown), at = places(rows), widest = rows.reduce((most, row) => Math.max(most, row.length), 1);
	const size = {width: widest * NODE.across, height: Math.max(1, rows.length) * NODE.down};
	const svg = el('svg', {...size, viewBox: `0 0 ${size.width} ${size.height}`, role: 'img',
		'aria-label': `graph of ${shown.length} operations`});
	for (const one of shown)
		for (const {from, tensor} of one.sources) if (at.has(from)) svg.append(arrow(at.get(from), at.get(one), tensor));
	for (const one of shown) svg.append(node(one, at.get(one)));
	return el('div', {class: 'graph'}, el('p', {}, `operations ${shown.length ? begins + 1 : 0} to ${begins + shown.length} of ${items.length}, ` +
		'each below those whose results it reads; an arrow is a tensor ',
	inline([begins && link('earlier', {from: begins - GRAPH_MOST}), begins + GRAPH_MOST < items.length &&
		link('later', {from: begins + GRAPH_MOST})].filter(Boolean), ' · ')), el('div', {}, svg));
}
