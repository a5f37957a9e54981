// ---- the state, in the fragment

let state;
function read() {
	const given = new URLSearchParams(location.hash.slice(1));
	const at = given.has('at') ? Number(given.get('at')) : peakAt;
	state = {at: Math.min(Math.max(Math.round(at) || 0, 0), entries.length), tab: given.get('tab') || 'operations',
		q: given.get('q') || '', tensor: given.get('tensor'), request: given.get('request'), operation: given.get('operation'),
		all: given.get('all'), from: given.has('from') ? Math.max(0, Math.round(Number(given.get('from'))) || 0) : null};
}
function fragment(change) {
	const next = {...state, ...change}, out = new URLSearchParams();
	if (['tensor', 'request', 'operation'].some(key => key in change))
		for (const key of ['tensor', 'request', 'operation']) if (!(key in change)) next[key] = null;
	if ('tab' in change || 'q' in change) next.all = next.from = null;
	for (const [key, value] of Object.entries(next))
		if (value !== null && value !== undefined && value !== '') out.set(key, value);
	return out.toString();
}
// Moves without an entry in the browser's history: for what slides and what is typed.
function change(to) {
	history.replaceState(null, '', '#' + fragment(to));
	show();
}

const tensorLink = tensor => tensor ? link(describe(tensor), {tensor: tensor.id}) : 'unknown';
const requestLink = entry => link(`request ${entry.number}`, {request: entry.number, at: entry.at});
const called = one => one.label ? `${one.label}: ${one.name}` : one.name;
const operationLink = one => link(`${called(one)} (request ${one.request}${one.index >= 0 ? `.${one.index}` : ''})`,
	{operation: one.id, at: one.entry.at});
const clientLink = one => link(`session ${one.session || 0}`, {tab: 'clients', q: `session ${one.session || 0}`},
	`uid ${one.uid || 0}, pid ${one.pid || 0}`);
const momentLink = (text, entry) => link(text, {at: entry.at});
const clockOf = time => timed ? `+${span(time - begin)}` : `request ${time}`;

// Nothing where there are none.
function inline(items, separator) {
	if (!items.length) return '';
	const out = el('span');
	items.forEach((item, i) => out.append(i ? separator : '', item));
	return out;
}

// ---- time

// Labels beside a picture that is stretched: [fraction from left or top, text].
function axes(picture, xs, ys) {
	for (const old of picture.parentNode.querySelectorAll('.tick')) old.remove();
	for (const [at, text] of xs)
		picture.after(el('span', {class: `tick x${at > 0.9 ? ' last' : at < 0.05 ? ' first' : ''}`, style: `left:${100 * at}%`}, text));
	for (const [at, text] of ys) picture.after(el('span', {class: 'tick y', style: `top:${100 * at}%`}, text));
}

function drawChart() {
	const chart = byId('chart'), most = Math.max(1, usedAfter[peakAt]), length = Math.max(1, end - begin);
	const x = time => 1000 * Math.min(Math.max(time - begin, 0), length) / length, y = n => 156 - 150 * n / most;
	let path = `M0 ${y(0)}V${y(usedAfter[0])}`;
	for (const entry of entries)
		if (usedAfter[entry.at] !== usedAfter[entry.at - 1])
			path += `H${x(entry.time).toFixed(2)}V${y(usedAfter[entry.at]).toFixed(2)}`;
	chart.append(el('path', {class: 'area', d: `${path}H1000V156Z`}),
		el('line', {class: 'peak', x1: 0, x2: 1000, y1: y(most), y2: y(most)}));
	refusals.slice(0, 2000).forEach(entry => chart.append(el('line', {class: 'refused', x1: x(entry.time), x2: x(entry.time),
		y1: 148, y2: 160}, el('title', {}, `request ${entry.number}: ${entry.status}`))));
	const mark = (entry, kind, text) => chart.append(el('line', {class: kind, x1: x(entry.time), x2: x(entry.time), y1: 0, y2: 12},
		el('title', {}, text)));
	if (recovery) mark(recovery, 'recovered', recoveryText());
	for (const {entry, back, gone} of waiting.values()) {
		if (back) mark(back, 'resumed', `session ${entry.session} came back`);
		if (gone) mark(gone, 'expired', `session ${entry.session} did not come back`);
	}
	returns.forEach(entry => mark(entry, 'resumed', `session ${entry.session} came back`));
	const round = ns => timed ? span(ns).replace(/(\.\d*?)0+ /, '$1 ').replace('. ', ' ') : `request ${ns}`;
	axes(chart, ticks(length, 5, false).map(time => [time / length, round(time)]), ticks(most, 4, true).map(n => [y(n) / 160, bytes(n)]));
	const cursor = chart.appendChild(el('line', {class: 'cursor', id: 'cursor', y1: 0, y2: 160}));
	chart.addEventListener('click', event => {
		const box = chart.getBoundingClientRect(), time = begin + length * (event.clientX - box.left) / box.width;
		change({at: entries.filter(entry => entry.time <= time).length});
	});
	return at => {
		const where = at ? x(entries[at - 1].time) : 0;
		cursor.setAttribute('x1', where);
		cursor.setAttribute('x2', where);
	};
}

const some = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;

function recoveryText() {
	const one = recovery.recovery, all = [...waiting.values()], back = all.filter(waits => waits.back).length;
	const gone = all.filter(waits => waits.gone).length, ago = recovery.answered_ns && one.at_ns ? recovery.answered_ns - one.at_ns : null;
	return `The daemon started${ago === null ? '' : ` ${span(ago)} before this record`} from a state that ` +
		`${one.was_closed ? 'was closed in order' : 'was not closed: it had been killed, or had crashed'}. ` +
		`${some(one.tensors || 0, 'tensor')} and ${some(one.views || 0, 'view')} came back` +
		`${one.cut ? `, ${one.cut} of them without some of their data (DATA_LOST)` : ''}; ${one.lost || 0} lost` +
		`${one.ended ? `, ${one.ended} ended with their sessions` : ''}. ${some(one.sessions || 0, 'session')} waited: since the record ` +
		`began ${back} came back, ${gone} expired, ${all.length - back - gone} wait${all.length - back - gone === 1 ? 's' : ''} still.`;
}

function showRecovery() {
	byId('recovery').hidden = !recovery;
	document.querySelector('[data-tab=recovery]').hidden = !recovery;
	if (recovery) byId('recovery').replaceChildren(el('b', {}, 'Recovery. '), recoveryText(), ' ', link('which, and why', {tab: 'recovery'}));
}

function showPeak() {
	const entry = entries[peakAt - 1];
	if (!entry && !usedAfter[0]) return byId('peak').append(told ? 'nothing was allocated' : 'the record does not tell places');
	if (!entry || entry.before)
		return byId('peak').append(`peak ${bytes(usedAfter[peakAt])} of ${bytes(device.npu_bytes)} per NPU, when the record began`);
	const made = tensors.filter(tensor => tensor.entry === entry);
	byId('peak').replaceChildren('peak ', el('b', {}, bytes(usedAfter[peakAt])),
		` of ${bytes(device.npu_bytes)} per NPU (${(100 * usedAfter[peakAt] / device.npu_bytes).toFixed(1)} %) at `,
		momentLink(clockOf(entry.time), entry), ', made by ', requestLink(entry), ' of ', clientLink(entry), ': ',
		inline(made.map(tensorLink), ', '));
}

function showNow() {
	const entry = entries[state.at - 1];
	byId('slider').value = state.at;
	byId('now').replaceChildren(entry ? inline([clockOf(entry.time), entry.before ? 'before the first request' : requestLink(entry),
		entry.call + (entry.status ? ` ${entry.status}` : ''), `${bytes(usedAfter[state.at])} per NPU`], ' · ') : 'before the first request');
}

// ---- the map

function channelsOf(place) {
	if (place.rows) return Math.ceil(place.cols / (place.w || place.cols));
	return (place.shape || {}).c || 1;
}

// Columns of NPUs that hold a channel of it, as [first, one after the last].
function columns(tensor) {
	const n = device.n_npus, start = tensor.place.start_npu || 0, count = Math.min(channelsOf(tensor.place), n);
	return start + count <= n ? [[start, start + count]] : [[start, n], [0, start + count - n]];
}

function showMap() {
	const n = device.n_npus, alive = tensors.filter(tensor => !tensor.isView && isAlive(tensor, state.at));
	const height = 300, top = Math.max(reach, 1), svg = el('svg', {viewBox: `0 0 1000 ${height}`,
		preserveAspectRatio: 'none', role: 'img', 'aria-label': `memory map: ${alive.length} tensors`});
	for (const tensor of alive) {
		const offset = offsetAt(tensor, state.at), y = height * offset / top, high = Math.max(0.7, height * tensor.bytes / top);
		const group = el('g', {fill: colour(tensor), 'data-tensor': tensor.id,
			class: String(tensor.id) === state.tensor ? 'picked' : '',
			onclick: () => change({tensor: tensor.id, request: null, operation: null})},
		el('title', {}, `${describe(tensor)}\n${layoutOf(tensor.place)} ${formatOf(tensor.place)} ${shapeOf(tensor.place)}\n` +
			`offset ${offset}, ${bytes(tensor.bytes)} per NPU`), el('rect', {class: 'empty', x: 0, y, width: 1000, height: high}));
		for (const [from, to] of columns(tensor))
			group.append(el('rect', {x: 1000 * from / n, y, width: 1000 * (to - from) / n, height: high}));
		svg.append(group);
	}
	byId('map').replaceChildren(svg);
	axes(svg, [...new Set([0, n >> 2, n >> 1, n - (n >> 2), n - 1])].map(npu => [(npu + 0.5) / n, npu ? String(npu) : 'NPU 0']),
		ticks(top, 5, true).map(offset => [offset / top, bytes(offset)]));
	byId('there').replaceChildren(el('span', {}, `${alive.length} tensors:`), ...alive.slice(0, 200).map(tensor =>
		el('span', {}, el('i', {style: `background:${colour(tensor)}`}), tensorLink(tensor), ` ${bytes(tensor.bytes)}`)),
	alive.length > 200 ? `and ${alive.length - 200} more` : '');
}

// ---- lists: per tab its columns ([heading, is a number]) and its rows

const operationRow = one => ({text: `${called(one)} ${one.queue} session ${one.session} request ${one.request} ` +
	`${one.saturated ? 'saturated' : ''} ${one.why || ''} ${one.destroyed ? 'destroyed' : ''} ` +
	one.tensors.map(([role, handle]) => byHandle.has(handle) ? `${role}=${describe(byHandle.get(handle))}` : role).join(' '),
get cells() { return [operationLink(one), clientLink(one), inline(one.tensors.map(([role, handle]) =>
	inline([role, tensorLink(byHandle.get(handle))], '=')), ' '), one.start ? clockOf(one.start) : '', span(one.took),
span(one.wait), one.waited_for === undefined ? '' : inline([one.why, operationLink(operations[one.waited_for])], ': '),
one.saturated || one.wrapped ? el('span', {class: 'warn'}, [one.saturated && `${one.saturated} saturated`,
	one.wrapped && `${one.wrapped} wrapped`].filter(Boolean).join(', ')) : '',
one.destroyed ? el('span', {class: 'bad'}, `${bytes(one.destroyed)} of others destroyed`) : one.warning || '']; }});

const tensorRow = tensor => ({text: `${describe(tensor)} ${layoutOf(tensor.place)} ${formatOf(tensor.place)} session ${tensor.session}` +
	`${tensor.isView ? ' view' : ''}`,
get cells() { return [tensorLink(tensor), tensor.entry.before ? 'before' : clientLink(tensor.entry), `${layoutOf(tensor.place)}${tensor.isView ? ' (view)' : ''}`, formatOf(tensor.place),
	shapeOf(tensor.place), bytes(tensor.bytes), tensor.all ? `${(100 * tensor.waste / tensor.all).toFixed(0)} %` : '',
	momentLink(clockOf(tensor.entry.time), tensor.entry), clockOf(tensor.lastUse),
	tensor.died ? momentLink(clockOf(tensor.died.time), tensor.died) : 'still there', span(tensor.idle)]; }});

const tensorHeads = [['tensor'], ['made by'], ['layout'], ['type'], ['shape'], ['per NPU', 1], ['waste', 1], ['allocated', 1],
	['last used', 1], ['freed', 1], ['idle before', 1]];

const aftermathRow = ({line, isLoss, tensor, waits}) => line !== undefined ? {text: line,
	cells: ['the state', isLoss ? el('span', {class: 'bad'}, 'lost') : 'kept', '', line]} :
	tensor ? {text: `${describe(tensor)} DATA_LOST lost`, cells: [tensorLink(tensor), el('span', {class: 'bad'}, 'DATA_LOST'), '',
		`${bytes(tensor.lost)} are lost until they are rewritten: they were being written when the daemon ended`]} :
		{text: `session ${waits.entry.session} ${waits.back ? 'came back' : waits.gone ? 'expired' : 'waits'}`,
			cells: [clientLink(waits.entry), waits.back ? 'came back' : waits.gone ? el('span', {class: 'warn'}, 'expired') : 'waits still',
				waits.back || waits.gone ? momentLink(clockOf((waits.back || waits.gone).time), waits.back || waits.gone) : '',
				waits.back ? 'its client had its token' : waits.gone ? 'its client did not come in time; its tensors without names ended' : '']};

const lists = {
	operations: {heads: [['operation'], ['client'], ['tensors'], ['began', 1], ['took', 1], ['waited', 1], ['waited for'], ['counts'],
		['conflicts']], items: operations, row: operationRow},
	graph: {items: operations, row: operationRow, draw: drawGraph},
	tensors: {heads: tensorHeads, items: tensors, row: tensorRow},
	late: {heads: tensorHeads, items: late, row: tensorRow},
	recovery: {heads: [['what'], ['became'], ['when', 1], ['why']], items: aftermath, row: aftermathRow},
	refusals: {heads: [['request'], ['client'], ['call'], ['status'], ['when', 1], ['why']], items: refusals, row: entry => ({
		text: `request ${entry.number} session ${entry.session} ${entry.call} ${entry.status} ${(entry.answer || {}).message || ''}`,
		get cells() { return [requestLink(entry), clientLink(entry), entry.call, el('span', {class: 'bad'}, entry.status),
			momentLink(clockOf(entry.time), entry), (entry.answer || {}).message || '']; }})},
	clients: {heads: [['client'], ['uid', 1], ['pid', 1], ['requests', 1], ['refused', 1], ['operations', 1], ['DMA', 1], ['kernels', 1],
		['waited', 1], ['held at most, per NPU', 1]], items: [...clients.values()], row: one => ({
		text: `session ${one.session} uid ${one.uid} pid ${one.pid}`,
		get cells() { return [link(`session ${one.session}`, {tab: 'operations', q: `session ${one.session}`}), one.uid, one.pid, one.requests,
			one.refusals, one.operations, span(one.dma), span(one.kernel), span(one.waited), bytes(one.peak)]; }})},
};

function table(heads, rows) {
	return el('table', {}, el('thead', {}, el('tr', {}, ...heads.map(([text, n]) => el('th', n ? {class: 'n'} : {}, text)))),
		el('tbody', {}, ...rows.map(row => el('tr', {}, ...row.cells.map((cell, i) =>
			el('td', heads[i][1] ? {class: 'n'} : {}, cell instanceof Node ? cell : String(cell)))))));
}

// Cells are made only where they are looked at, so that a long record opens at once.
function found(list) {
	const words = state.q.toLowerCase().split(/\s+/).filter(Boolean).map(word => new RegExp(
		`(^|[^a-z0-9])${word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}${/^\d+$/.test(word) ? '([^0-9]|$)' : ''}`));
	if (!words.length) return list.items;
	return list.items.filter(item => {
		const text = (item.text ||= list.row(item).text.toLowerCase());
		return words.every(word => word.test(text));
	});
}

function showList() {
	const list = lists[state.tab] || lists.operations, items = found(list);
	const most = state.all ? items.length : MOST_ROWS;
	for (const button of byId('tabs').children) {
		const tab = button.dataset.tab;
		button.classList.toggle('on', lists[tab] === list);
		button.textContent = `${button.textContent.replace(/ \d+$/, '')} ${lists[tab].items.length}`;
	}
	if (list.draw) return byId('list').replaceChildren(list.draw(items));
	byId('list').replaceChildren(table(list.heads, items.slice(0, most).map(list.row)),
		items.length > most ? link(`show all ${items.length}`, {all: 1}) : `${items.length} of ${list.items.length}`);
}

// ---- one thing

const detail = {
	tensor(id) {
		const tensor = tensors[id], blocks = tensor && tensor.blocks;
		return tensor && [`Tensor ${describe(tensor)}`, [['handle', tensor.handle], ['is', `${layoutOf(tensor.place)} ` +
			`${formatOf(tensor.place)} ${shapeOf(tensor.place)}`], ['view of', tensor.base && tensorLink(tensor.base)],
		['allocated', tensor.entry.before ? 'before the record' : inline([momentLink(clockOf(tensor.entry.time), tensor.entry),
			requestLink(tensor.entry), clientLink(tensor.entry)], ' · ')],
		['DATA_LOST', tensor.lost && `${bytes(tensor.lost)}, when the record began`],
		['lies', tensor.places.map(place => `NPU ${tensor.place.start_npu || 0}, offset ${place.offset}`).join(', moved to ')],
		['per NPU', bytes(tensor.bytes)],
		['bytes', `${blocks.data || 0} data, ${blocks.dummy || 0} dummy, ${blocks.padding || 0} padding, ${blocks.empty || 0} empty`],
		['used', tensor.uses.length ? el('span', {}, `${tensor.uses.length} times: `,
			inline(tensor.uses.slice(0, 50).map(operationLink), ', '), tensor.uses.length > 50 ? ' …' : '') : 'never'],
		['freed', tensor.died ? inline([momentLink(clockOf(tensor.died.time), tensor.died), requestLink(tensor.died)], ' · ') : 'still there'],
		['idle before that', span(tensor.idle)]]];
	},
	operation(id) {
		const one = operations[id];
		return one && [`${called(one)}, request ${one.request}`, [['queue', one.queue], ['of', clientLink(one)], ['request', requestLink(one.entry)],
			['tensors', inline(one.tensors.map(([role, handle]) => inline([role, tensorLink(byHandle.get(handle))], '=')), ', ')],
			['came', one.came ? clockOf(one.came) : ''], ['began', one.start ? clockOf(one.start) : ''], ['took', span(one.took)],
			['waited', span(one.wait)], ['waited for', one.waited_for !== undefined && inline([one.why,
				operationLink(operations[one.waited_for])], ': ')],
			['saturated', one.saturated || 0], ['wrapped', one.wrapped || 0], ['multiply-adds', one.macs || 0],
			['destroyed', one.destroyed && `${bytes(one.destroyed)} of other tensors`], ['warning', one.warning]]];
	},
	request(number) {
		const entry = byNumber.get(Number(number)), answer = entry && entry.answer || {};
		return entry && [`Request ${entry.number}: ${entry.call}`, [['of', clientLink(entry)], ['answered', momentLink(clockOf(entry.time), entry)],
			['status', entry.status || 'OK'], ['why', answer.message],
			['facts', (answer.fields || []).map(field => `${field.key} ${field.text ?? field.number}`).join(', ')],
			['operations', inline(operations.filter(one => one.entry === entry).slice(0, 50).map(operationLink), ', ')],
			['tensors', inline(tensors.filter(tensor => tensor.entry === entry).map(tensorLink), ', ')],
			['asked', JSON.stringify((entry.request || {})[entry.call] || {}).slice(0, 2000)]]];
	},
};

function showDetail() {
	const kind = ['tensor', 'operation', 'request'].find(key => state[key] !== null && state[key] !== undefined);
	const made = kind && detail[kind](state[kind]), box = byId('detail');
	box.hidden = !made;
	if (!made) return;
	const rows = el('dl');
	for (const [key, value] of made[1])
		if (value !== undefined && value !== null && value !== '' && value !== false)
			rows.append(el('dt', {}, key), el('dd', {}, value instanceof Node ? value : String(value)));
	box.firstElementChild.textContent = made[0];
	box.lastElementChild.replaceChildren(rows);
}

// ---- beginning

function show() {
	read();
	moveCursor(state.at);
	showNow();
	showMap();
	showDetail();
	showList();
	if (document.activeElement !== byId('search')) byId('search').value = state.q;
}

read();
findSources();
byId('about').textContent = `${device.n_npus} NPUs of ${bytes(device.npu_bytes)}, npumemd ${device.version}; ` +
	`${entries.filter(entry => entry.request).length} requests of ${clients.size} clients, ${operations.length} operations, ${tensors.length} tensors, ` +
	`${refusals.length} refusals` + (timed ? ` in ${span(end - begin)}` : '; the recording has no times') +
	(record.cut_at_byte ? '; the recording was cut: its end is missing' : '');
byId('slider').max = entries.length;
byId('slider').addEventListener('input', event => change({at: event.target.value}));
byId('back').addEventListener('click', () => change({at: Math.max(0, state.at - 1)}));
byId('forth').addEventListener('click', () => change({at: Math.min(entries.length, state.at + 1)}));
byId('search').addEventListener('input', event => change({q: event.target.value}));
for (const button of byId('tabs').children)
	button.addEventListener('click', () => { location.hash = fragment({tab: button.dataset.tab}); });
window.addEventListener('hashchange', show);
const moveCursor = drawChart();
showPeak();
showRecovery();
show();
