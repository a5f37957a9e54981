// onnxruntime on one model: node onnxruntime.js MODEL INPUT.f32 [N,C,H,W] THREADS [BASIC.onnx]
// It answers "ready"; then for each line of its input, N, the least time of N runs in ms: of one thread the processor time
// of the process, of more the clock. With BASIC.onnx it writes the
// model there as it is after the basic optimizations, which are of ONNX's own operators, and ends.
const ort = require('onnxruntime-node'), fs = require('fs'), lines = require('readline');
(async () => {
  const [model, file, shape, threads, basic] = process.argv.slice(2);
  const session = await ort.InferenceSession.create(model, {
    intraOpNumThreads: Number(threads), interOpNumThreads: 1, executionMode: 'sequential', logSeverityLevel: 3,
    graphOptimizationLevel: basic ? 'basic' : 'all', ...(basic ? {optimizedModelFilePath: basic} : {})});
  if (basic)
    return;
  const bytes = fs.readFileSync(file), values = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  const feeds = {[session.inputNames[0]]: new ort.Tensor('float32', values, JSON.parse(shape))};
  await session.run(feeds);
  const own = () => { const {user, system} = process.cpuUsage(); return (user + system) / 1e3; };
  const now = threads === '1' ? own : () => Number(process.hrtime.bigint()) / 1e6;
  console.log('ready');
  for await (const line of lines.createInterface({input: process.stdin})) {
    let least = Infinity;
    for (let i = 0; i < Number(line); i++) {
      const begin = now();
      await session.run(feeds);
      least = Math.min(least, now() - begin);
    }
    console.log(least.toFixed(4));
  }
})();
