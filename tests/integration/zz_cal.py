import time
from support import *
with Daemon("--npu-bytes","4194304") as d, d.client() as c:
  for w in (1<<10, 16<<10,64<<10,1<<20):
    c.call(**alloc("t",(1,64,1,w),layout=pb.STRIDED,stride=dims(3*w,3*w,3*w,3)))
    t=time.time(); c.call(**fill("t",1)); t1=time.time();print(w,"fill",t1-t)
    c.call(**fill("t",1)); t2=time.time(); print("again",t2-t1)
    c.call(**free("t")); print("free",time.time()-t2)
  c.call(**alloc("t",(1,64,1,4<<20),layout=pb.COMPACT)); t=time.time(); c.call(**fill("t",1)); print(time.time()-t); t=time.time(); c.call(**fill("t",1)); print(time.time()-t)
