const u = new Uint8Array([1,2,300,-1,1.9,"7",NaN,undefined]); console.log(u, [u], new Uint8Array(0), new Uint8Array(3), {a:new Uint8Array(30)});
for (const f of [()=>new Uint8Array(-1), ()=>new Uint8Array("3"), ()=>new Uint8Array({length:2,0:5}), ()=>new Uint8Array(null), ()=>new Uint8Array(new Set([1,2])), ()=>new Uint8Array(1.5), ()=>new Uint8Array()]) try { console.log(f()) } catch (e) { console.log(e.name, e.message) }
const s = u.subarray(1,3); s[0]=99; console.log(u[1], s, u.slice(0,2), u.length, u.byteLength, u[99], u.at(-1), s.set([5,6]), u);
try { s.set([1,2,3]) } catch (e) { console.log(e.name, e.message) }
console.log(u.map(x=>x*100), u.filter(x=>x>3), u.reduce((a,b)=>a+b), u.join("-"), String(u), u.indexOf(44), u.includes(255), [...u], Array.from(u), Array.isArray(u), JSON.stringify(u), Object.keys(u), u.find(x=>x>5), u.some(x=>x>200), u.toSorted(), u.toReversed(), u.with(0,9), [...u.entries()][0]);
u.sort(); console.log(u, u.reverse(), u.fill(7,2,4), u.copyWithin(0,3)); u[0] = 257; u[100] = 5; console.log(u[0], u.length, u instanceof Uint8Array, typeof u, u == "1", 2 in u, 50 in u);
console.log(Uint8Array.from([1,2],x=>x*2), Uint8Array.of(1,2), Uint8Array.from("123"), Uint8Array.BYTES_PER_ELEMENT, structuredClone(Uint8Array.of(1)), u.BYTES_PER_ELEMENT, u.byteOffset);
for (const x of Uint8Array.of(5,6)) console.log(x);
const e = new TextEncoder(); console.log(e, e.encoding, e.encode("h\u00e9\ud83d\ude00\ud800"), e.encode(), e.encode(5), e.encodeInto("h\u00e9\u20ac", new Uint8Array(4)));
for (const l of ["utf-8","UTF8"," utf-8 ","unicode-1-1-utf-8","utf-16le","utf-16","utf-16be","x"]) try { const d = new TextDecoder(l); console.log(l, d.encoding, JSON.stringify(d.decode(Uint8Array.of(0xef,0xbb,0xbf,65,0,0x80,0x81,0x9d,0xe9,66)))) } catch (e) { console.log(l, e.name, e.message, e.code) }
console.log(new TextDecoder(), new TextDecoder("utf-8",{fatal:true,ignoreBOM:true}), JSON.stringify(new TextDecoder("utf-8",{ignoreBOM:true}).decode(Uint8Array.of(0xef,0xbb,0xbf,65))));
try { new TextDecoder("utf-8",{fatal:true}).decode(Uint8Array.of(0xff)) } catch (e) { console.log(e.name, e.message, e.code) }
const d = new TextDecoder(); console.log(JSON.stringify([d.decode(Uint8Array.of(0xe2,0x82),{stream:true}), d.decode(Uint8Array.of(0xac),{stream:true}), d.decode(Uint8Array.of(0xe2)), d.decode(), d.decode(Uint8Array.of(65))]));
for (const bytes of [[0xf0,0x9f,0x98],[0xc0,0x80],[0xed,0xa0,0x80],[0xf4,0x90,0x80,0x80],[0xe2,0x28,0xa1],[0xf0,0x28,0x8c,0xbc],[0xfe,0xff]]) console.log(JSON.stringify(new TextDecoder().decode(new Uint8Array(bytes))));
console.log(JSON.stringify(new TextDecoder("utf-16le").decode(Uint8Array.of(0xff,0xfe,65,0,0,0xd8,66,0,67))));
try { new TextDecoder().decode("abc") } catch (e) { console.log(e.name, e.message, e.code) }
try { new TextDecoder().decode([65]) } catch (e) { console.log(e.name, e.code) }
