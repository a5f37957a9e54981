'use strict';
// The report's model and its views. What is shown is a function of the record and of the fragment of the address
// (#at=12&tab=tensors&tensor=3&q=conv), so that every view has a link. Texts of clients become text nodes, never HTML.

const record = JSON.parse(document.getElementById('record').textContent);
const device = record.device, entries = record.entries, operations = record.operations;
const MOST_ROWS = 300;
const byId = id => document.getElementById(id);

// ---- small things

function el(name, attributes, ...children) {
	const svg = ['svg', 'rect', 'line', 'path', 'g', 'title', 'text'].includes(name);
	const made = svg ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
	for (const [key, value] of Object.entries(attributes || {}))
		if (key === 'onclick') made.addEventListener('click', value);
		else made.setAttribute(key, value);
	made.append(...children.filter(child => child !== null && child !== undefined));
	return made;
}

function bytes(n) {
	for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
		if (n < 1024 || unit === 'GiB') return `${Number.isInteger(n) ? n : n.toFixed(1)} ${unit}`;
		n /= 1024;
	}
}

function span(ns) {
	if (ns === null || ns === undefined || !timed) return '';
	for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]])
		if (Math.abs(ns) >= size) return `${(ns / size).toFixed(2)} ${unit}`;
	return `${Math.round(ns)} ns`;
}

// Round numbers from 0 to `most`, about `n` steps: of bytes powers of two.
function ticks(most, n, areBytes) {
	const least = Math.max(1, most / n), power = 10 ** Math.floor(Math.log10(least));
	const step = areBytes ? 2 ** Math.ceil(Math.log2(least)) : [1, 2, 5, 10].map(one => one * power).find(one => one >= least);
	return Array.from({length: Math.floor(most / step * (1 + 1e-9)) + 1}, (_, i) => i * step);
}

const link = (text, change, title) => el('a', {href: '#' + fragment(change), title: title || ''}, text);

// ---- the model

const timed = entries.some(entry => entry.answered_ns);
const told = entries.some(entry => entry.answer);
const tensors = [], byHandle = new Map(), byName = new Map(), clients = new Map(), byNumber = new Map();

// What there was when the record began.
const beforeOf = entry => entry.recovery ? 'recovery' : entry.answer ? 'tensors that are there' : 'session that waits';

let clock = 0;
entries.forEach((entry, at) => {
	entry.at = at + 1;
	clock = Math.max(clock, timed ? entry.answered_ns || 0 : at + 1);
	entry.time = clock;
	entry.call = entry.before ? beforeOf(entry) : entry.request ? Object.keys(entry.request).find(key => key !== 'id') || 'none' :
		entry.ended ? 'end of session' : entry.shared ? 'share' : 'unknown';
	byNumber.set(entry.number, entry);
});
const begin = timed ? entries.reduce((least, entry) => Math.min(least, entry.came_ns || entry.answered_ns || least), Infinity) : 0;
const end = clock;

function resolve(entry, ref) {
	if (!ref) return undefined;
	if (ref.handle) return byHandle.get(ref.handle);
	return byName.get(ref.name && ref.name.includes(':') ? ref.name : `${entry.uid || 0}:${ref.name}`);
}

function clientOf(entry) {
	const session = entry.session || 0;
	if (!clients.has(session))
		clients.set(session, {session, uid: entry.uid || 0, pid: entry.pid || 0, requests: 0, refusals: 0, operations: 0,
			dma: 0, kernel: 0, waited: 0, held: 0, peak: 0});
	return clients.get(session);
}

const describe = tensor => tensor.name || tensor.label || `anonymous ${tensor.id}`;
const shapeOf = place => place.rows ? `${place.rows}×${place.cols}` :
	['n', 'c', 'h', 'w'].map(key => (place.shape || {})[key] || 0).join('×');
const formatOf = place => place.dtype.toLowerCase() + (place.frac_bits !== undefined ? ` Q.${place.frac_bits}` : '');
const layoutOf = place => (place.layout || 'ALIGNED').toLowerCase() +
	(place.mode && place.mode !== 'PLAIN' ? ` ${place.mode.replace('MODE_', '')}` : '');

function born(entry, told, isView) {
	const place = told.place || {}, blocks = place.blocks || {};
	const tensor = {id: tensors.length, handle: told.handle, name: told.name || '', label: told.label || '', uid: told.uid || 0, place, entry,
		session: entry.before ? told.session || 0 : entry.session || 0, isView, lost: told.state === 'lost' ? told.damaged_bytes : 0, base: isView ? byHandle.get(told.base_handle) : null, died: null, uses: [],
		places: [{at: entry.before ? 0 : entry.at, offset: place.offset || 0}], bytes: isView ? 0 : place.bytes_per_npu || 0,
		borrows: Boolean(told.borrows),
		waste: (blocks.dummy || 0) + (blocks.padding || 0) + (blocks.empty || 0), blocks};
	tensor.all = tensor.waste + (blocks.data || 0);
	tensors.push(tensor);
	byHandle.set(tensor.handle, tensor);
	if (tensor.name) byName.set(`${tensor.uid}:${tensor.name}`, tensor);
	return tensor;
}

const living = new Set(), waiting = new Map(), returns = [];
let used = 0, recovery = null;
const usedAfter = new Float64Array(entries.length + 1);

function hold(tensor, sign) {
	if (!tensor.borrows) used += sign * tensor.bytes;
	const client = clients.get(tensor.session);
	if (!client) return;
	client.held += sign * tensor.bytes;
	client.peak = Math.max(client.peak, client.held);
}

function dies(tensor, entry) {
	if (!tensor || tensor.died) return;
	tensor.died = entry;
	living.delete(tensor);
	hold(tensor, -1);
	if (tensor.name && byName.get(`${tensor.uid}:${tensor.name}`) === tensor) byName.delete(`${tensor.uid}:${tensor.name}`);
	if (!tensor.isView) for (const other of [...living]) if (other.base === tensor) dies(other, entry);
}

function enter(tensor) {
	living.add(tensor);
	hold(tensor, 1);
}

// What was there when the record began; views after all that they may be of.
const listed = entries.filter(entry => entry.before && entry.answer).flatMap(entry =>
	((entry.answer.list || {}).tensors || []).map(told => ({entry, told, isView: /[1-9a-f]/.test(told.base_handle || '')})));
for (const isView of [false, true])
	for (const one of listed) if (one.isView === isView) enter(born(one.entry, one.told, isView));
usedAfter[0] = used;

function begins(entry) {
	if (entry.recovery) recovery = entry;
	else if (!entry.answer) waiting.set(entry.session || 0, {entry, back: null, gone: null});
}

function apply(entry) {
	const request = entry.request || {}, answer = entry.answer || {};
	if (entry.before) return begins(entry);
	const client = clientOf(entry), waits = waiting.get(entry.session || 0);
	if (request.resume) {
		if (waits) waits.back = entry;
		else returns.push(entry);
	}
	if (entry.ended && waits && !waits.back) waits.gone = entry;
	if (entry.ended)
		for (const tensor of [...living]) if (!tensor.name && tensor.session === (entry.session || 0)) dies(tensor, entry);
	if (!entry.request) return;
	client.requests++;
	if (entry.status) {
		client.refusals++;
		return;
	}
	for (const one of (answer.allocated || {}).tensors || []) enter(born(entry, one, false));
	// One that is made while its request waits may be there before.
	if (request.view && answer.tensor && !byHandle.has(answer.tensor.handle)) enter(born(entry, answer.tensor, true));
	for (const ref of (request.free || {}).tensors || []) dies(resolve(entry, ref), entry);
	if (request.compact && !request.compact.dry_run)
		for (const move of (answer.compacted || {}).moves || []) {
			const tensor = byHandle.get(move.handle);
			if (tensor) tensor.places.push({at: entry.at, offset: (move.to_address || 0) % device.npu_bytes});
		}
}

for (const entry of entries) {
	apply(entry);
	usedAfter[entry.at] = used;
}
const peakAt = usedAfter.indexOf(usedAfter.reduce((most, n) => Math.max(most, n), 0));
const reach = tensors.reduce((most, tensor) => tensor.isView ? most :
	Math.max(most, ...tensor.places.map(place => place.offset + tensor.bytes)), 0);

operations.forEach((one, id) => {
	const client = clientOf(one), seen = new Set();
	one.id = id;
	one.entry = byNumber.get(one.request);
	one.took = one.end ? one.end - one.start : null;
	one.wait = one.start && one.came ? Math.max(0, one.start - one.came) : null;
	client.operations++;
	client[one.queue] += one.took || 0;
	client.waited += one.wait || 0;
	for (const [, handle] of one.tensors)
		for (let tensor = byHandle.get(handle); tensor && !seen.has(tensor); tensor = tensor.base) {
			seen.add(tensor);
			tensor.uses.push(one);
		}
});
for (const tensor of tensors) {
	const last = tensor.uses[tensor.uses.length - 1];
	tensor.until = tensor.died ? tensor.died.time : end;
	tensor.lastUse = last ? last.end || last.entry.time : tensor.entry.time;
	tensor.idle = Math.max(0, tensor.until - tensor.lastUse);
}
const refusals = entries.filter(entry => entry.status);
const late = tensors.filter(tensor => !tensor.isView && tensor.bytes && tensor.idle > (end - begin) / 20 &&
	tensor.idle > (tensor.until - tensor.entry.time) / 4).sort((a, b) => b.idle * b.bytes - a.idle * a.bytes);

// From the record's beginning on: what became of what the daemon found when it started.
const losses = tensors.filter(tensor => tensor.entry.before && tensor.lost);
const aftermath = !recovery ? [] : [
	...((recovery.recovery || {}).lines || []).map(line => ({line, isLoss: line.startsWith('lost')})),
	...losses.map(tensor => ({tensor})), ...[...waiting.values()].map(waits => ({waits}))];

const isAlive = (tensor, at) => (tensor.entry.before || tensor.entry.at <= at) && (!tensor.died || tensor.died.at > at);
const offsetAt = (tensor, at) => tensor.places.reduce((offset, place) => place.at <= at ? place.offset : offset, 0);
// A golden-angle walk around the circle: neighbours in time differ, and a tensor keeps its colour.
const colour = tensor => `hsl(${Math.round(tensor.id * 137.508) % 360} 60% var(--light))`;

