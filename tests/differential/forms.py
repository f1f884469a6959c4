"""The table of productions: what generated programs consist of, one form a line.

A hole is `@` with what stands there:

* `@number`, `@text`, `@flag`, `@numbers`, `@texts`, `@object`, `@map`, `@set`, `@date`, `@any`: an expression. `@T` is
  one of these kinds, the same in the whole form.
* `@new:number`, `@let:number`: the name of a new constant or variable, visible in what follows the statement.
* `@in:number`: a new name for the rest of the form, such as a parameter. `@1`, `@2`: the first, the second of these.
* `@var:number`, `@put:number`: a name that is visible, one that can be assigned. Without one the form is not used.
* `@block`, `@loop` (where `break` and `continue` may stand), `@case` (where `break` may), `@body:number` (statements
  and a `return`), `@result` (what the function around returns).
* any other word: one of the leaves below, such as an operator.

`step(value)` prints a value and returns it. After some steps it throws, so that each loop with a step in it ends.

A number before `|` says how often a form is chosen, otherwise once; a line that is indented belongs to the one before.
What stands between `⟦` and `⟧` is of TypeScript: Node does not get it. What differs on purpose is left out;
`docs/language.md` lists it.
"""

from __future__ import annotations

STATEMENTS = """
6| console.log(@any, @any);
2| console.log(`@name: ${@any}`);
4| const @new:T = @T;
4| let @let:T = @T;
2| let @let:number = @number;
3| @put:number = @number;
4| @put:number @becomes @number;
@put:number @becomes @small;
@put:number @becomes @any;
@put:number **= @small;
@put:number++;
console.log(@put:number++, --@put:number);
2| let @let:any = @number;
let @let:any;
var @let:any = @any;
4| @put:any = @any;
4| @put:any @becomes @any;
2| @put:any @becomes @number;
@put:any @chooses @any;
@put:any **= 2;
@put:any++;
console.log(@put:any++, --@put:any);
for (let @in:count = 0; @1 < 3; @1++) { if (@1 === 2) @put:any = @any; @loop }
for (let @in:count = 0; @1 < 3; @1++, @put:any = @any) @loop
console.log(step(@any), step(@any));
@put:text = @text;
@put:text += @any;
@put:flag = @flag;
@put:flag @chooses @flag;
@put:object.@key ??= @any;
@put:numbers = @numbers;
@put:texts = @texts;
@put:object = @object;
@var:object.@key = @any;
@var:object["@key"] = @any;
delete @var:object.@key;
@var:numbers[0] = @number;
@var:numbers[0] @becomes @number;
@var:object.@key @becomes @any;
@var:numbers.push(@number, @number);
@var:texts.push(@text);
console.log(@var:numbers.pop(), @var:numbers);
console.log(@var:numbers.shift(), @var:texts.unshift(@text));
console.log(@var:numbers.splice(@small, @small, @number), @var:numbers);
@var:numbers.sort((@in:number, @in:number) => @1 - @2);
@var:texts.reverse();
@var:numbers.fill(@number, @small, @small);
@var:numbers.length = 0;
@var:map.set(@any, @any);
console.log(@var:map.delete(@text), @var:map.size);
@var:set.add(@any);
@var:set.delete(@number);
2| if (@flag) @block
2| if (@any) @block else @block
if (@flag) @block else if (@flag) @block else @block
2| for (let @in:count = 0; @1 < @small; @1++) @loop
for (let @in:count = @small; @1 > 0; @1 -= 2) @loop
for (const @in:number of @numbers.slice(0, 4)) @loop
for (const @in:text of @texts.slice(0, 4)) @loop
for (const @in:text of @text.slice(0, 5)) @loop
for (const @in:text in @object) @loop
for (const [@in:text, @in:any] of Object.entries(@object)) @loop
for (const [@in:any, @in:any] of @map) @loop
for (const @in:any of @set) @loop
let @let:count = @small; while (@1-- > 0) @loop
2| while (step(@any)) @loop
2| do { step("round"); @loop } while (@any);
for (let @in:count = 0; @1 < @bound; @1 += 2) @loop
for (let @in:count = 5; @1 > -2; @1--) { step(@1); @loop }
for (let @in:number = @number; @1 < @number; @1 += 3) { step(@1); @loop }
for (let @in:number = @number; @1 >= @number; @1 -= 2) { step(@1); @loop }
for (let @in:number = @number; @1 <= @any; @1 += @number) { if (step(@1) > 9) break; @loop }
2| for (let @in:count = 0; @1 < @var:numbers.length; @1++) { step(@var:numbers[@1]); @loop }
for (let @in:count = @small; @1 < @var:texts.length; @1++) { step(@var:texts[@1]); @loop }
for (let @in:count = 0; @1 < @var:text.length; @1++) { if (step(@var:text[@1]) === "b") continue; @loop }
for (let @in:count = @var:numbers.length - 1; @1 >= 0; @1--) { step(@var:numbers[@1]); @loop }
for (let @in:count = @small; @1 < @var:object.@key; @1++) { step(@1); @loop }
for (let @in:count = 0; @1 < @var:object.@key; @1++) { if (@1 > 3) break; @put:number += @1; }
for (let @in:count = 0; @1 < @var:any.length; @1++) { step(@1); @loop }
3| const @new:list = []; for (let @in:count = 0; @2 < @small; @2++) { @1.push(@number); @loop }
const @new:list = [@number, @number, @number];
const @new:list = new Array(@small).fill(@number);
const @new:list = Array.from({ length: @small }, (@in:any, @in:number) => @number);
3| @var:list.push(@number);
@var:list.push(@any);
const @new:list = [@number, @number, @number, @number]; @1[@small] = @any;
2| const @new:list = [@number, @number, @number, @number]; @1[@small] @becomes @number;
@var:list[0]++;
@put:any = @var:list;
[@var:list[0], @put:any] = [@any, @any];
console.log(@var:list[@small] + @var:list[0], @var:list.pop() * 2, @var:list.length);
console.log(@var:list.map((@in:number) => (@number)));
console.log(@var:list.filter((@in:number) => @flag));
console.log(@var:list.reduce((@in:number, @in:number) => @number, @number));
for (const @in:number of @var:list) { step(@1); @loop }
console.log(@var:list.sort((@in:number, @in:number) => @1 - @2)[0] - 1);
const @new:grid = []; for (let @in:count = 0; @2 < 3; @2++) { const @in:list = [@number, @2]; @1.push(@3); @loop }
@var:grid[@small].push(@number);
@var:grid[1][2] = @any;
console.log(@var:grid[@small][0] * @var:grid[1][@small] - @var:grid[2][1]);
for (const @in:list of @var:grid) { step(1); @loop }
2| @in:label: while (step(@any)) @loop
2| @in:label: do { step("round"); @loop } while (@any);
@in:label: for (let @in:count = 0; @2 < 3; @2++) @loop
@in:label: for (const @in:any of [@any, @any, @any]) @loop
2| @in:spot: if (@any) @block else @block
@in:spot: switch (@any) { case @any: @case default: @case }
2| if (@flag) break @var:spot;
2| if (@flag) break @var:label;
3| if (@flag) continue @var:label;
for (const @in:any of [@any, @any]) @loop
console.log([@any, @any, @any].@each((@in:any) => (@any)));
let @let:count = @small; do @loop while (@1-- > 0);
switch (@number) { case @number: @block case 1: console.log("one"); break; case @number: @block break; default: @block }
switch (@text) { case @text: case 'a': @block break; default: console.log("other"); case @text: @block }
2| switch (@any) { case @any: @case case @any: @case default: @case }
switch (@any) { default: @case case @any: case @any: @case break; case @any: @case }
switch (true) { case @flag: console.log(@any); break; case @any: @block default: console.log(@any); }
@in:label: for (const @in:number of @numbers.slice(0, 3)) { for (const @in:text of @texts) {
    if (@flag) continue @1; if (@flag) break @1; console.log(@any); } }
@in:label: for (let @in:count = 0; @2 < 3; @2++) { switch (@2) {
    case 1: if (@flag) continue @1; break; default: if (@flag) break @1; } console.log(@2); }
try @block catch (@in:error) { console.log(@1.name, @1 instanceof Error); }
try { throw @error; } catch (@in:error) { console.log(@1.name, @1.message); }
try { throw @any; } catch (@in:any) @block finally { console.log("finally"); }
try @block catch { console.log("caught"); } finally { console.log("finally"); }
try { @block throw step(@any); } catch ({ name: @in:any = @any, ...rest }) @block
2| try @block catch (@in:caught) { console.log(@1 instanceof Error ? @1.name : @1); @block } finally @block
2| try @block finally @block
try { throw @any; } finally @block
throw @error;
const { [@text]: @new:any, ...@new:object } = @object;
let { length: @let:any, x: @let:any = @any } = [@any, @any];
let [@let:any = 1, ...@let:any] = [@any, @any];
const { @key: @new:any, @key: @new:any = @any } = @object;
const { @new:any, ...@new:object } = @object;
const [@new:number = @number, @new:number = @number] = @numbers;
const [@new:text = @text, ...@new:texts] = @texts;
[@put:number, @put:number] = [@number, @number];
2| const @new:fn = (@in:number, @in:number) => @number;
const @new:fn = (@in:number, @in:number = @number) => @body:number;
function @new:fn(@in:number, @in:number) @body:number
function @new:tf(@in:text, @in:text = @text) @body:text
const @new:tf = (@in:text) => @text;
function @new:fn(...@in:numbers) @body:number
function @new:af(@in:any, @in:any = @any) @body:any
2| const @new:af = (@in:any, @in:any) => @body:any;
const @new:any = await Promise.resolve(@any);
console.log(await Promise.all([@any, Promise.resolve(@any)]));
console.log(await Promise.allSettled([Promise.resolve(@any), Promise.reject(@any)]));
console.log(JSON.stringify(@any), JSON.stringify(@any, null, 2));
const @new:set = new Set([@any, @any]);
const @new:map = new Map([[@any, @any]]);
3| const @new:thing = { n: @number, s: @text, bump(@in:number) { this.n += @2; return this; },
    get twice() { return step(this.n * 2); }, set twice(@in:number) { this.n = @3 / 2; step("set"); },
    show: function () { const inner = () => this.n; return `${inner()} ${this.s}`; },
    own: { n: @any, up() { this.n = [this.n, 1].join().slice(0, 9); return this.n; } },
    only: { get one() { return typeof this.two; } }, *both() { yield this.n; const r = yield* [1, 2]; yield r; } };
const @new:thing = Object.assign({ n: @number }, @var:thing);
const @new:thing = { ...@var:thing, s: @text };
@var:thing.twice = @number;
@var:thing["twice"] @becomes @number;
@var:thing.own.n @becomes @any;
@var:thing.zzz?.(step(1));
@var:thing.bump(@number).bump(1);
console.log(@var:thing.twice, @var:thing);
@var:thing.s += @text;
const @new:any⟦: @type⟧ = @any⟦ as @type⟧;
let @let:T⟦: @type⟧ = @T⟦ satisfies @type⟧;
var @let:any⟦: @type⟧ = @any⟦ as unknown as @type⟧;
function @new:fn⟦<T extends @type, U = @type>⟧(@in:number⟦: @type⟧, @in:number⟦?: @type⟧)⟦: @type⟧ @body:number
const @new:fn = ⟦<T>⟧(@in:number⟦: @type⟧, @in:number⟦: any⟧ = @number)⟦: @promise⟧ => @body:number;
function* @new:gen(@in:any) { try { const got = yield (@any); if (got) step(got);
    for (const each of @numbers) yield each; @body:any }
    catch (error) { yield step("caught"); return "c"; } finally { step("closed"); } }
function* @new:gen(@in:any) { for (let at = 0; at < @small; at++) { step(yield at); if (@flag) return at; }
    const got = yield* @numbers; yield got; yield /a+/g; yield (@any); }
function* @new:gen(@in:any, @in:any = step(@any), [@in:any] = [step("p")]) { step("b"); yield @any; }
function* @new:gen(@in:any) { const r = yield* @var:gen(@1); step(r); yield r; yield* [@1, @any]; }
2| const @new:steps = @var:gen(@any);
console.log(@var:steps.next(), @var:steps.next(@any).value);
console.log(@var:steps.next(@any).done, @var:steps.return(@any));
console.log(@var:steps.throw(@error).value);
2| for (const @in:any of @var:gen(@any)) @loop
for (const @in:any of @var:steps) @loop
for (const @in:any of @var:thing.both()) @loop
const [@new:any, @new:any] = @var:gen(@any);
async function* @new:late(@in:any) { try { for (let at = 0; at < @small; at++) { step(await at);
    const got = yield Promise.resolve(at); step(got); } return "z"; } finally { await null; step("shut"); } }
async function* @new:late(@in:any) { const r = yield* @var:late(@1); step(r); yield* [@1, @any]; }
2| for await (const @in:any of @var:late(@any)) @loop
for await (const @in:any of @var:gen(@any)) @loop
for await (const @in:any of [@any, Promise.resolve(@any)]) @loop
console.log((await @var:late(@any).next()).value, JSON.stringify(await @var:late(1).return(@any)));
const @new:map = new Map⟦<any, any>⟧([[@any, @any]]);
"""

JUMPS = """
break;
continue;
if (@flag) break;
if (@flag) continue;
if (@any) break;
if (@any) continue;
"""

RETURNS = """
if (@flag) return @result;
if (@flag) return step(@result);
"""

SUMS = """
6| (@number @sign @number)
2| (@number * @n1)
(@small * -@n1)
2| (@number @bits @number)
(@n1 @bits @small)
(-@number)
Math.@math(@number)
"""

NUMBERS = """
6| (@number + @number)
4| (@number - @number)
4| (@number * @number)
2| (@number / @number)
2| (@number % @number)
(@n1 ** @small)
(@n1 + @n1 * @n1 - @n1 / @n1)
(@flag ? @number : @number)
(-@number)
2| (@number @bits @number)
(@number @bits @small)
(~@number)
3| (@any @arith @any)
2| (@any @bits @any)
(@any | 0)
(-@any)
(~@any)
((@any) ** 2)
0x1f
0b101
(.5 + @number)
(+@any)
Number(@any)
parseInt(@text)
parseInt(@text, @radix)
parseFloat(@text)
@text.length
@numbers.length
@text.indexOf(@text)
@text.lastIndexOf(@text)
(@text.codePointAt(@small) ?? 0)
@text.charCodeAt(@small)
@text.search(@regex)
@text.localeCompare(@text)
@numbers.indexOf(@number)
@texts.lastIndexOf(@text)
@numbers.findIndex((@in:number) => @flag)
@numbers.findLastIndex((@in:number) => @flag)
(@numbers[@small] ?? @number)
(@numbers.at(-@small) ?? 0)
@numbers.reduce((@in:number, @in:number) => @number, @number)
@texts.reduce((@in:number, @in:text) => @number, 0)
@numbers.reduceRight((@in:number, @in:number) => @number, 1)
Math.max(@number, @number)
Math.min(@number, @number, @number)
Math.max(...@numbers)
3| Math.@math(@number)
Math.@math(@number / @n1)
Math.@math(@any)
Math.max(@any, @any)
String(@any).length
String(@any).charCodeAt(@small)
[@any, 2, 3].indexOf(@any)
Math.max(...@var:gen(@any))
[...@var:gen(@any)].length
[...@var:thing.both()].length
new Set(@var:gen(@any)).size
Math.hypot(@n1, @n1)
Math.fround(@number)
Math.clz32(@number)
Math.imul(@n1, @n1)
Math.pow(@n1, @small)
Number((@number).toFixed(@digits))
@date.getTime()
@date.getUTCFullYear()
@date.getUTCDay()
@date.getUTCMonth()
Date.UTC(2024, @small, @n1)
Date.parse(@datetext)
@map.size
@set.size
@var:fn(@number, @number)
@var:fn⟦<number, Map<string, U[]>>⟧(@number)
@var:fn(@number, @number, @any)
@texts.push(@text)
Object.keys(@object).length
@var:thing.n
@var:thing.twice
@var:thing.bump(@number).n
@var:thing["bump"](@number).twice
@var:thing.bump.bind({ n: @number })(@number).n
({ ...@var:thing }).twice
(@number⟦ as @type⟧)
@numbers⟦!⟧.length
({ n: @number, half() { return this.n / 2; } }).half()
"""

TEXTS = """
@var:thing.show()
@var:thing?.show?.()
({ ...@var:thing, n: @number }).show()
@var:thing.show.call({ n: @any, s: @text })
(@text⟦ as string⟧)
5| (@text + @text)
(@text + @any)
(@any + @text)
3| `${@any}-${@any}`
String(@any)
String(@any).slice(@any)
[@any, @any].join()
(typeof @var:thing.own?.["up"]())
(@number).toString()
(@number).toFixed(@digits)
(@number).toPrecision(@precision)
(@number).toExponential(@digits)
(Math.trunc(@number) % 4294967296).toString(@radix)
(typeof @any)
@text.toUpperCase()
@text.toLowerCase()
@text.trim()
@text.trimStart()
@text.slice(@index, @index)
@text.slice(@index)
@text.substring(@index, @index)
@text.substr(@index, @small)
@text.charAt(@index)
(@text.at(@index) ?? "none")
(@text[@small] ?? "")
@text.repeat(@small)
@text.padStart(@n1, @t1)
@text.padEnd(@n1, @t1)
@text.replace(@text, @text)
@text.replaceAll(@t1, @text)
@text.replace(@regex, @text)
@text.replace(@regex, (@in:text) => @text)
@text.concat(@text, @any)
@text.normalize("NFD")
(@flag ? @text : @text)
(@text && @text)
(@text || @text)
@texts.join(@t1)
@numbers.join(@t1)
@numbers.map((@in:number) => (@any)).join()
(@texts[@small] ?? @text)
@texts.reduce((@in:text, @in:text) => @text, "")
(JSON.stringify(@any) + "")
JSON.stringify(@object, null, @small)
@date.toISOString()
JSON.stringify(@date)
encodeURIComponent(@text)
encodeURI(@text)
btoa(@t1)
String.fromCharCode(97 + @small, 65 + @small)
(@number).toLocaleString()
@var:tf(@text)
@var:tf(@text, @text)
[...@text].reverse().join("")
@text.split(@t1).map((@in:text) => @text).join("|")
Object.entries(@object).map(([@in:text, @in:any]) => `${@1}=${@2}`).join("&")
new URL(@text, "https://example.com/a/b").href
new URLSearchParams(@object).toString()
new URLSearchParams(@text).toString()
"""

FLAGS = """
3| (@number < @number)
2| (@number >= @number)
(@text < @text)
8| (@any @compares @any)
(!@any)
(!@flag)
(@flag && @flag)
(@flag || @flag)
Boolean(@any)
Number.isInteger(@any)
Number.isFinite(@any)
Number.isNaN(@any)
Number.isSafeInteger(@number)
isNaN(@any)
Array.isArray(@any)
Object.is(@any, @any)
@text.includes(@text)
@text.startsWith(@t1)
@text.endsWith(@t1)
@numbers.includes(@number)
@numbers.some((@in:number) => @flag)
@numbers.every((@in:number) => @flag)
@texts.some((@in:text) => @flag)
@regex.test(@text)
("@key" in @object)
Object.hasOwn(@object, "@key")
@map.has(@any)
@set.has(@any)
(@any instanceof Map)
(@any instanceof Array)
(@any instanceof Object)
(@date < @date)
URL.canParse(@text)
"""

NUMBER_LISTS = """
4| [@number, @number, @number]
[...@numbers, @number]
[@number, ...@numbers]
@numbers.map((@in:number) => @number)
@numbers.map((@in:number, @in:count) => @number)
@numbers.filter((@in:number) => @flag)
@numbers.slice(@index, @index)
@numbers.concat(@numbers)
@numbers.concat(@number)
@numbers.toSorted((@in:number, @in:number) => @1 - @2)
@numbers.toReversed()
[...@numbers].sort()
@numbers.toSpliced(@small, 1, @number)
@numbers.with(0, @number)
@texts.map((@in:text) => @number)
@texts.map(Number)
@text.split(",").map(Number)
[@numbers, @numbers].flat()
@numbers.flatMap((@in:number) => [@1, @number])
Array.from({ length: @small }, (_, @in:count) => @number)
Array.from(@numbers, (@in:number) => @number)
Array.of(@number, @number)
[...@numbers.keys()]
Object.values({ a: @number, b: @number })
(@flag ? @numbers : @numbers)
structuredClone(@numbers)
new Array(@small).fill(@number)
"""

TEXT_LISTS = """
3| [@text, @text]
[...@texts, @text]
[...@t1]
@text.split(@t1)
@text.split("")
@text.split(@regex)
@text.split(@t1, @small)
Object.keys(@object)
@texts.map((@in:text) => @text)
@numbers.map(String)
@texts.filter((@in:text) => @flag)
@texts.filter(Boolean)
@texts.slice(@index)
@texts.concat(@texts)
@texts.toSorted()
@texts.toReversed()
[...@texts].sort((@in:text, @in:text) => @1.length - @2.length)
(@text.match(@regex) ?? []).map(String)
[...@text.matchAll(@globalregex)].map((@in:any) => @1[0])
Array.from(@text)
Object.entries(@object).map(([@in:text]) => @text)
[...new Set(@texts)]
"""

OBJECTS = """
3| { @key: @any, @key: @any }
{ @key: @number, @key: { @key: @any } }
{ ...@object, @key: @any }
{ ["@key" + @small]: @any, @key: [@any, @any] }
Object.fromEntries([["@key", @any], ["@key", @any]])
Object.fromEntries(Object.entries(@object).filter(([@in:text, @in:any]) => @flag))
Object.assign({}, @object, @object)
JSON.parse(JSON.stringify({ @key: @number, @key: @text, @key: @flag }))
structuredClone({ @key: @number, @key: [@text] })
(@flag ? @object : @object)
"""

MAPS = """
new Map([[@any, @any], [@any, @any]])
new Map(Object.entries(@object))
new Map(@numbers.map((@in:number) => [@1, @any]))
new Map([...@map].filter(([@in:any]) => @flag))
"""

SETS = """
new Set([@any, @any, @any])
new Set(@numbers)
new Set(@text)
new Set([...@set, @any])
"""

DATES = """
new Date(@number)
new Date(Date.UTC(2024, @small, @n1))
new Date(@datetext)
"""

ERRORS = """
new Error("own " + @text)
new TypeError("own " + @number)
new RangeError(`own ${@text}`)
Object.assign(new Error("own"), { name: "Mine" })
"""

ANYTHING = """
4| @number
4| @text
3| @flag
2| @numbers
2| @texts
3| @object
@map
@set
null
undefined
3| (@any @logic @any)
3| (@any + @any)
2| (@any)?.[@at]
2| [@any, @any]?.[@any]
(@any⟦ as any⟧)⟦!⟧?.[@at]
(@any⟦ satisfies @type⟧)
@var:af(@any, @any)
@var:af⟦<T, { a: 1 }>⟧(@any)
[@any, @any].pop()
@var:thing.own.up()
@var:thing.only.one
@var:gen(@any).next().value
[...@var:gen(@any)]
Array.from(@var:gen(@any))
(([@in:any, @in:any]) => @2)(@var:gen(@any))
Object.fromEntries([["k", [...@var:gen(@any)][0]]])
step(@any)
(@flag ? @any : @any)
@object.@key
@object?.@key
@object.@key?.@key
@object["@key"]
@map.get(@any)
[@any, @any]
[[@any], @any]
@numbers.find((@in:number) => @flag)
@texts.findLast((@in:text) => @flag)
@texts.at(@index)
[@any, @any].at(@index)
[@any, @any, @any].sort()
[@any, [@any, [@any]]].flat()
[...@map.entries()]
[...@map.values()]
[...@set]
Object.entries(@object)
Object.values(@object)
JSON.parse(JSON.stringify([@any]))
@text.match(@regex)
(await @any)
(void @any)
(await (async () => (@any))())
((@in:any) => (@any))(@any)
structuredClone(@any)
"""

# Types of TypeScript, which change nothing.
TYPES = """
any
number
string | null
Array<string>
readonly number[]
[string, number?: any][]
{ a: number; b?: string }
(x: number, ...rest: any[]) => void
Map<string, Array<Set<number>>>
keyof typeof Math
{ [key: string]: unknown }
A.B & C
"a" | 1 | true
(string | number)[]
Promise<void>
unknown
Record<"a", number>["a"]
"""

FORMS = {
    "statement": STATEMENTS, "jump": JUMPS, "return": RETURNS, "type": TYPES,
    "sum": SUMS, "number": NUMBERS, "text": TEXTS, "flag": FLAGS, "numbers": NUMBER_LISTS, "texts": TEXT_LISTS,
    "object": OBJECTS, "map": MAPS, "set": SETS, "date": DATES, "error": ERRORS, "any": ANYTHING,
}  # fmt: skip

# What a kind is where it may not go deeper, or has no other forms.
LEAVES = {
    "number": "0;1;2;3;7;10;42;100;0.5;1.25;(-1);(-3.75);1e21;1e-7;123456789;NaN;Infinity;0.1;(-7);1000003;4294967296;"
    "9007199254740991;9007199254740992;4503599627370496;(-9007199254740991);1e308;(-0)",
    "n1": "0;1;2;3;5;12;0.5;(-2);(-1);2.5",
    "small": "0;1;2;3",
    "index": "0;1;2;-1;-2;5",
    "digits": "0;1;2;5",
    "precision": "1;3;6",
    "radix": "2;8;16;36",
    "text": "'';'a';'abc';'Hello, World';'1,2,3';'  x ';'12';'3.5';'é';'ßtraße';'a-b_c';'null';'日本語';'it\\'s'",
    "t1": "'';',';'a';' ';'-';'ab'",
    "flag": "true;false",
    "numbers": "[];[1, 2, 3];[3, 1, 10];[0.5, -1];[5]",
    "texts": "[];['b', 'a'];['x', 'yy', ''];['10', '9']",
    "object": "{};{ a: 1 };{ a: 1, b: 'two' };{ c: [1, 2], a: null };{ 2: 'x', 1: 'y', b: true }",
    "map": "new Map();new Map([['k', 1]]);new Map([[1, 'one'], ['1', 2]])",
    "set": "new Set();new Set([1, 2]);new Set(['a', 1, 'a'])",
    "date": "new Date(0);new Date(1709805600000);new Date(NaN)",
    "datetext": "'2024-02-29';'2024-03-07T10:00:00Z';'1999-12-31T23:59:59.999Z';'x';'2024-01-05T10';"
    "'05-Jan-2024 10:00 EST';'2024.1.5 3:04:05.6 pm'",
    "error": "new Error('own')",
    "regex": "/a/;/[a-c]+/g;/\\d+/;/(\\w)(\\w)/;/\\s*,\\s*/g;/^[A-Z]/;/x|1/gi;/(?<first>\\w)/",
    "globalregex": "/[a-z]/g;/\\d/g;/(\\w)\\w/g",
    "any": "null;undefined;0;1;'';'a';true;false;[];{};NaN;'1';[1];(-0)",
    "at": "0;1;2;-1;7;0.5;'1';'length';9007199254740992",
    "bound": "3;4;2.5;[1, 2, 3].length;'3'",
    "becomes": "=;+=;+=;-=;*=;/=;%=;&=;|=;^=;<<=;>>=;>>>=",
    "chooses": "??=;||=;&&=",
    "arith": "-;*;/;%",
    "sign": "+;-;*;/;%",
    "bits": "&;|;^;<<;>>;>>>",
    "compares": "===;===;!==;==;!=;<;>;<=;>=",
    "logic": "&&;||;??",
    "math": "floor;ceil;abs;round;trunc;sqrt;sign",
    "each": "map;filter;forEach;some;findIndex",
    "promise": "any;x is string[];A | { b: C }",
    "key": "a;b;c;d",
    "name": "seen;got;is",
}
# The kinds that `@T` stands for.
KINDS = ("number", "number", "text", "text", "flag", "numbers", "texts", "object", "map", "set", "any")
