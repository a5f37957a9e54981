// onnxruntime's fp32 on one thread: the least time of 80 runs, in ms. usage: node onnxruntime.js MODEL INPUT.f32 [N,C,H,W]
const ort = require('onnxruntime-node'), fs = require('fs');
(async () => {
  const [model, file, shape] = process.argv.slice(2);
  const session = await ort.InferenceSession.create(model, {
    intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: 'sequential', logSeverityLevel: 3});
  const bytes = fs.readFileSync(file), values = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  const feeds = {[session.inputNames[0]]: new ort.Tensor('float32', values, JSON.parse(shape))};
  let least = Infinity;
  for (let i = 0; i < 80; i++) {
    const begin = process.hrtime.bigint();
    await session.run(feeds);
    least = Math.min(least, Number(process.hrtime.bigint() - begin) / 1e6);
  }
  console.log(least.toFixed(3));
})();
