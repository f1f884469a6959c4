"""The table of productions: what generated programs consist of, one form a line.

A hole is `@` with what stands there:

* `@number`, `@text`, `@flag`, `@numbers`, `@texts`, `@object`, `@map`, `@set`, `@date`, `@any`: an expression. `@T` is
  one of these kinds, the same in the whole form.
* `@new:number`, `@let:number`: the name of a new constant or variable, visible in what follows the statement.
* `@in:number`: a new name for the rest of the form, such as a parameter. `@1`, `@2`: the first, the second of these.
* `@var:number`, `@put:number`: a name that is visible, one that can be assigned. Without one the form is not used.
* `@block`, `@loop` (where `break` and `continue` may stand), `@body:number` (statements and a `return`).

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
3| @put:number = @number;
@put:number += @number;
@put:number -= @number;
@put:number *= @number;
@put:number /= @number;
@put:number %= @number;
@put:number **= 2;
@put:number++;
@put:number |= @number;
@put:number >>>= @small;
@put:number &= @any;
--@put:number;
@put:text = @text;
@put:text += @any;
@put:flag = @flag;
@put:flag ||= @flag;
@put:flag &&= @flag;
@put:object.@key ??= @any;
@put:numbers = @numbers;
@put:texts = @texts;
@put:object = @object;
@var:object.@key = @any;
@var:object["@key"] = @any;
delete @var:object.@key;
@var:numbers[0] = @number;
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
let @let:count = @small; do @loop while (@1-- > 0);
switch (@number) { case @number: @block case 1: console.log("one"); break; case @number: @block break; default: @block }
switch (@text) { case @text: case 'a': @block break; default: console.log("other"); case @text: @block }
switch (true) { case @flag: console.log(@any); break; case @any: @block default: console.log(@any); }
@in:label: for (const @in:number of @numbers.slice(0, 3)) { for (const @in:text of @texts) {
    if (@flag) continue @1; if (@flag) break @1; console.log(@any); } }
@in:label: for (let @in:count = 0; @2 < 3; @2++) { switch (@2) {
    case 1: if (@flag) continue @1; break; default: if (@flag) break @1; } console.log(@2); }
try @block catch (@in:error) { console.log(@1.name, @1 instanceof Error); }
try { throw @error; } catch (@in:error) { console.log(@1.name, @1.message); }
try { throw @any; } catch (@in:any) @block finally { console.log("finally"); }
try @block catch { console.log("caught"); } finally { console.log("finally"); }
throw @error;
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
const @new:any = await Promise.resolve(@any);
console.log(await Promise.all([@any, Promise.resolve(@any)]));
console.log(await Promise.allSettled([Promise.resolve(@any), Promise.reject(@any)]));
console.log(JSON.stringify(@any), JSON.stringify(@any, null, 2));
const @new:set = new Set([@any, @any]);
const @new:map = new Map([[@any, @any]]);
const @new:thing = { n: @number, s: @text, bump(@in:number) { this.n += @2; return this; },
    get twice() { return this.n * 2; }, set twice(@in:number) { this.n = @3 / 2; },
    show: function () { return `${this.n} ${this.s}`; } };
const @new:thing = { ...@var:thing, s: @text };
@var:thing.twice = @number;
@var:thing.bump(@number).bump(1);
console.log(@var:thing.twice, @var:thing);
@var:thing.s += @text;
const @new:any = @any⟦ as any⟧;
const @new:T⟦: any⟧ = @T⟦ satisfies any⟧;
function @new:fn⟦<T>⟧(@in:number⟦: any⟧, @in:number⟦?: any⟧)⟦: any⟧ @body:number
const @new:map = new Map⟦<any, any>⟧([[@any, @any]]);
"""

JUMPS = """
break;
continue;
if (@flag) break;
if (@flag) continue;
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
(@number | @number)
(@number & @number)
(@number ^ @number)
(~@number)
(@number << @small)
(@number >> @small)
(@number >>> @small)
(@any | 0)
0x1f
0b101
(.5 + @number)
(+@any)
(@any - @any)
(@any * @any)
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
Math.round(@number)
Math.floor(@number)
Math.ceil(@number)
Math.trunc(@number)
Math.sign(@number)
Math.abs(@number)
Math.sqrt(@number)
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
@var:fn(@number)
@texts.push(@text)
Object.keys(@object).length
@var:thing.n
@var:thing.twice
@var:thing.bump(@number).n
(@number⟦ as number⟧)
@numbers⟦!⟧.length
({ n: @number, half() { return this.n / 2; } }).half()
"""

TEXTS = """
@var:thing.show()
(@text⟦ as string⟧)
5| (@text + @text)
(@text + @any)
(@any + @text)
3| `${@any}-${@any}`
String(@any)
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
(@any < @any)
(@any >= @any)
3| (@any === @any)
2| (@any == @any)
(@any != @any)
(@any !== @any)
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
(@any ?? @any)
(@any || @any)
(@any && @any)
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

FORMS = {
    "statement": STATEMENTS, "jump": JUMPS, "number": NUMBERS, "text": TEXTS, "flag": FLAGS, "numbers": NUMBER_LISTS,
    "texts": TEXT_LISTS, "object": OBJECTS, "map": MAPS, "set": SETS, "date": DATES, "error": ERRORS, "any": ANYTHING,
}  # fmt: skip

# What a kind is where it may not go deeper, or has no other forms.
LEAVES = {
    "number": "0;1;2;3;7;10;42;100;0.5;1.25;(-1);(-3.75);1e21;1e-7;123456789;NaN;Infinity;0.1",
    "n1": "0;1;2;3;5;12;0.5;(-2);2.5",
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
    "datetext": "'2024-02-29';'2024-03-07T10:00:00Z';'1999-12-31T23:59:59.999Z';'x'",
    "error": "new Error('own')",
    "regex": "/a/;/[a-c]+/g;/\\d+/;/(\\w)(\\w)/;/\\s*,\\s*/g;/^[A-Z]/;/x|1/gi;/(?<first>\\w)/",
    "globalregex": "/[a-z]/g;/\\d/g;/(\\w)\\w/g",
    "any": "null;undefined;0;1;'';'a';true;false;[];{};NaN;'1';[1];-0",
    "key": "a;b;c;d",
    "name": "seen;got;is",
}
# The kinds that `@T` stands for.
KINDS = ("number", "number", "text", "text", "flag", "numbers", "texts", "object", "map", "set", "any")
