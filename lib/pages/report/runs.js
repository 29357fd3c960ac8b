(function(){
'use strict';
var data=JSON.parse(document.getElementById('data').textContent),columns=data.columns,count=data.links.length;
var by=function(id){return document.getElementById(id)};
var make=function(tag,text,parent){var e=document.createElement(tag);if(text!==undefined)e.textContent=text;if(parent)parent.appendChild(e);return e};
var number=function(t){return t!==''&&/^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|^[-+]?(inf|nan)$/i.test(t)?(/nan/i.test(t)?NaN:/inf/i.test(t)?(t[0]==='-'?-Infinity:Infinity):parseFloat(t)):null};
columns.forEach(function(c){c.numbers=c.values.map(number);c.numeric=c.values.every(function(v,i){return v===''||c.numbers[i]!==null})});
var text=function(c,row){return c.values[c.codes[row]]};
var named=function(name){
  var exact=columns.filter(function(c){return c.name===name});
  if(!exact.length)exact=columns.filter(function(c){return c.name.endsWith('.'+name)});
  if(exact.length!==1)throw new Error((exact.length?'several columns end in .':'no run has a column ')+name);
  return exact[0];
};
// The filters of zs-runs --filter: COLUMN=VALUE, != < <= > >= ~ !~; another word is looked for in every column that is shown.
var parsed=function(line){
  return (line.match(/(?:[^\s"]|"[^"]*")+/g)||[]).map(function(word){
    word=word.replace(/"/g,'');
    var m=/^([A-Za-z_][\w.\-]*)(!=|<=|>=|!~|=|<|>|~)(.*)$/.exec(word);
    if(!m){var low=word.toLowerCase();return function(row){return columns.some(function(c){return c.shown&&text(c,row).toLowerCase().indexOf(low)>=0})}}
    var c=named(m[1]),op=m[2],value=m[3],n=number(value),pattern=op.indexOf('~')>=0?new RegExp(value):null;
    var holds=c.values.map(function(v,i){
      if(pattern)return pattern.test(v)===(op==='~');
      var x=c.numbers[i],both=x!==null&&n!==null;
      var equal=both?x===n||(x!==x&&n!==n):v===value;
      if(op==='=')return equal;if(op==='!=')return !equal;
      if(v===''||(x===null)!==(n===null))return false;
      var less=both?x<n:v<value,more=both?x>n:v>value;
      return op==='<'?less:op==='<='?less||equal:op==='>'?more:more||equal;
    });
    return function(row){return holds[c.codes[row]]};
  });
};
var sorted={column:null,down:false},chosen=[],rows=[],lines=[],at=0,kHeight=30;
var compare=function(c,a,b){
  var i=c.codes[a],k=c.codes[b];if(i===k)return 0;
  var x=c.numbers[i],y=c.numbers[k],s=sorted.down?-1:1;
  var rank=function(v,n){return v===''?3:n===null?2:n!==n?1:0};
  var p=rank(c.values[i],x),q=rank(c.values[k],y);
  if(p!==q)return p-q;
  return p===0?s*(x-y):p===2?s*(c.values[i]<c.values[k]?-1:1):0;
};
function select(){
  var status=by('status'),tests;
  status.className='';
  try{tests=parsed(by('filter').value)}catch(e){status.textContent=e.message;status.className='bad';return}
  var any=by('any').checked;
  rows=[];
  for(var r=0;r<count;++r)if(!tests.length||(any?tests.some(function(t){return t(r)}):tests.every(function(t){return t(r)})))rows.push(r);
  if(sorted.column){var c=sorted.column;rows.sort(function(a,b){return compare(c,a,b)||a-b})}
  var group=by('group').value;
  if(!group)lines=rows.map(function(r){return{row:r}});
  else{
    var g=named(group),sets={},order=[];
    rows.forEach(function(r){var v=text(g,r);if(!sets[' '+v]){sets[' '+v]=[];order.push(v)}sets[' '+v].push(r)});
    lines=[];
    order.forEach(function(v){
      var of=sets[' '+v];lines.push({group:group+' = '+(v===''?'(none)':v)+summary(of)});
      of.forEach(function(r){lines.push({row:r})});
    });
  }
  at=Math.min(at,Math.max(0,lines.length-1));
  status.textContent=rows.length===count?count+(count===1?' run':' runs'):rows.length+' of '+count+' runs';
  draw();keep();
}
function summary(of){
  var c=sorted.column,s=': '+of.length+(of.length===1?' run':' runs');
  if(!c||!c.numeric)return s;
  var x=of.map(function(r){return c.numbers[c.codes[r]]}).filter(function(v){return v!==null&&isFinite(v)});
  if(!x.length)return s;
  var sum=x.reduce(function(a,b){return a+b},0),short=function(v){return String(+v.toPrecision(6))};
  return s+', '+c.name+' '+short(Math.min.apply(null,x))+' to '+short(Math.max.apply(null,x))+', mean '+short(sum/x.length);
}
var shown=function(){return columns.filter(function(c){return c.shown})};
function heads(){
  var head=document.querySelector('#box thead tr');head.textContent='';
  make('th','',head).setAttribute('aria-label','chosen');
  shown().forEach(function(c){
    var th=make('th',undefined,head),button=make('button',c.name,th);th.scope='col';button.type='button';
    if(c.numeric)th.className='n';
    if(sorted.column===c)th.setAttribute('aria-sort',sorted.down?'descending':'ascending');
    button.onclick=function(){
      if(sorted.column!==c)sorted={column:c,down:false};else if(!sorted.down)sorted.down=true;else sorted={column:null,down:false};
      heads();select();
    };
  });
}
function draw(){
  var box=by('box'),body=box.querySelector('tbody'),wide=shown().length+1;
  var first=Math.max(0,Math.floor(box.scrollTop/kHeight)-10),last=Math.min(lines.length,first+Math.ceil(box.clientHeight/kHeight)+20);
  body.textContent='';
  var space=function(n){if(n<=0)return;var td=make('td',undefined,make('tr',undefined,body));td.colSpan=wide;td.parentNode.className='space';td.style.height=n*kHeight+'px'};
  space(first);
  for(var i=first;i<last;++i)body.appendChild(line(i,wide));
  space(lines.length-last);
}
function line(i,wide){
  var l=lines[i],tr=document.createElement('tr');
  if(i===at)tr.style.boxShadow='inset 3px 0 0 var(--link)';
  if(l.group!==undefined){tr.className='group';make('td',l.group,tr).colSpan=wide;return tr}
  var mark=make('input',undefined,make('td',undefined,tr));
  mark.type='checkbox';mark.checked=chosen.indexOf(l.row)>=0;mark.tabIndex=-1;mark.setAttribute('aria-label','choose');
  mark.onchange=function(){at=i;choose(l.row)};
  shown().forEach(function(c,k){
    var td=make('td',undefined,tr),value=text(c,l.row);if(c.numeric)td.className='n';td.title=value;
    if(data.links[l.row]&&(c.name==='run_id'||c.name==='run_name')&&value){var a=make('a',value,td);a.href=data.links[l.row]}else td.textContent=(c.texts||c.values)[c.codes[l.row]];
  });
  return tr;
}
function choose(row){
  var k=chosen.indexOf(row);
  if(k>=0)chosen.splice(k,1);else chosen.push(row);
  draw();curves();
}
var unpack=function(base,Type){var s=atob(base),b=new Uint8Array(s.length);for(var i=0;i<s.length;++i)b[i]=s.charCodeAt(i);return new Type(b.buffer)};
function curve(row){
  var c=data.curves[row];
  if(c&&!c.x){c.x=unpack(c.step,Uint32Array);c.y=unpack(c.loss,Float32Array);c.h=unpack(c.hash,Uint32Array)}
  return c;
}
var label=function(row){
  var name=columns.find(function(c){return c.name==='run_name'}),id=columns.find(function(c){return c.name==='run_id'});
  return name&&text(name,row)||id&&text(id,row)||'run '+(row+1);
};
// Compares two runs by their shared points: each point has a hash of every loss up to it.
function verdict(a,b){
  var p=curve(a),q=curve(b);
  if(!p||!q)return 'no losses to compare';
  var places={},last=null,shared=0,far=0;
  for(var i=0;i<p.x.length;++i)places[p.x[i]]=i;
  for(var k=0;k<q.x.length;++k){
    i=places[q.x[k]];if(i===undefined)continue;
    ++shared;
    far=Math.max(far,Math.abs(p.y[i]-q.y[k])/Math.max(Math.abs(p.y[i]),Math.abs(q.y[k]))||0);
    if(p.h[i]===q.h[k]){last=q.x[k];continue}
    for(var m=k+1;m<q.x.length;++m){var j=places[q.x[m]];if(j!==undefined)far=Math.max(far,Math.abs(p.y[j]-q.y[m])/Math.max(Math.abs(p.y[j]),Math.abs(q.y[m]))||0)}
    var how=far===0?', by less than is shown':', by up to '+(100*far).toPrecision(2)+' %';
    return (last===null?'differs from step '+q.x[k]+' on':'differs after step '+last+', by step '+q.x[k])+how;
  }
  if(!shared)return 'no step in common';
  var digest=columns.find(function(c){return c.name==='state_digest'}),d=digest&&text(digest,a),e=digest&&text(digest,b);
  var equal=p.printed||q.printed?'equal as printed':'equal to the bit';
  var same=p.n===q.n?'all '+p.n+' losses are '+equal:'losses are '+equal+' up to step '+last;
  return same+(d&&e?d===e?', and so is the state: exact':', but the states at the end differ':'');
}
function curves(){
  var box=by('curves'),plot=by('plot'),legend=by('legend');
  box.hidden=!chosen.length;plot.textContent='';legend.textContent='';
  if(!chosen.length)return;
  var log=by('log').checked,some=chosen.map(curve),W=Math.max(340,Math.min(1100,plot.clientWidth||900)),H=360,L=64,B=34,T=10,R=10;
  var low=Infinity,high=-Infinity,end=1,begin=Infinity;
  some.forEach(function(c){if(!c)return;for(var i=0;i<c.x.length;++i){end=Math.max(end,c.x[i]);begin=Math.min(begin,c.x[i]);var y=c.y[i];if(isFinite(y)&&(!log||y>0)){low=Math.min(low,y);high=Math.max(high,y)}}});
  var ns='http://www.w3.org/2000/svg',svg=document.createElementNS(ns,'svg');
  svg.setAttribute('viewBox','0 0 '+W+' '+H);svg.setAttribute('role','img');svg.setAttribute('aria-label','loss over steps of the chosen runs');
  var put=function(tag,attributes,words){var e=document.createElementNS(ns,tag);Object.keys(attributes).forEach(function(k){e.setAttribute(k,attributes[k])});if(words!==undefined)e.textContent=words;svg.appendChild(e)};
  var f=log?Math.log:function(v){return v};
  if(low<=high){
    if(begin===end)begin=end-1;
    var a=f(low),z=f(high);if(a===z){a-=Math.abs(a)*.01||1;z+=Math.abs(z)*.01||1}
    var X=function(x){return L+(x-begin)/(end-begin)*(W-L-R)},Y=function(y){return T+(z-f(y))/(z-a)*(H-T-B)};
    ticks(low,high,log).forEach(function(v){
      put('line',{x1:L,x2:W-R,y1:Y(v),y2:Y(v),stroke:'var(--grid)'});
      put('text',{x:L-8,y:Y(v)+4,'text-anchor':'end',fill:'var(--quiet)'},String(+v.toPrecision(4)));
    });
    ticks(begin,end,false).filter(function(v){return v===Math.floor(v)}).forEach(function(v){
      put('text',{x:X(v),y:H-B+18,'text-anchor':'middle',fill:'var(--quiet)'},String(v));
    });
    put('text',{x:(L+W-R)/2,y:H-2,'text-anchor':'middle',fill:'var(--ink)'},'step');
    put('text',{x:12,y:H/2,'text-anchor':'middle',fill:'var(--ink)',transform:'rotate(-90 12 '+H/2+')'},'loss');
    some.forEach(function(c,k){
      if(!c)return;
      var d='',pen=false;
      for(var i=0;i<c.x.length;++i){var y=c.y[i];if(!isFinite(y)||(log&&y<=0)){pen=false;continue}d+=(pen?'L':'M')+X(c.x[i]).toFixed(1)+' '+Y(y).toFixed(1);pen=true}
      put('path',{d:d,fill:'none',stroke:'var(--c'+k%8+')','stroke-width':k?2:6,'stroke-opacity':k?1:.45,'stroke-dasharray':k<8?'':'6 4'});
    });
  }else put('text',{x:W/2,y:H/2,'text-anchor':'middle',fill:'var(--quiet)'},'no finite loss');
  plot.appendChild(svg);
  chosen.forEach(function(row,k){
    var li=make('li',undefined,legend),i=make('i',undefined,li);i.style.background='var(--c'+k%8+')';
    var to=data.links[row];if(to){make('a',label(row),li).href=to}else make('span',label(row),li);
    make('span',k===0?(chosen.length>1?': the others are compared with it':''):': '+verdict(chosen[0],row),li);
  });
}
// Round values between two: 1, 2 or 5 of a power of ten apart, or, of a logarithm over more than a decade, such ones.
function ticks(low,high,log){
  var out=[],k,v;
  if(log&&high/low>10){
    for(k=Math.floor(Math.log10(low));k<=Math.log10(high);++k)[1,2,5].forEach(function(m){v=m*Math.pow(10,k);if(v>=low&&v<=high&&(m===1||high/low<1e3))out.push(v)});
    return out;
  }
  var rough=(high-low)/5||Math.abs(high)||1,ten=Math.pow(10,Math.floor(Math.log10(rough))),step=[1,2,5,10].map(function(m){return m*ten}).find(function(m){return m>=rough})||rough;
  for(k=Math.ceil(low/step);k*step<=high;++k)out.push(+(k*step).toPrecision(12));
  return out.length?out:[low];
}
function keep(){
  var words=[];
  if(by('filter').value)words.push('filter='+encodeURIComponent(by('filter').value));
  if(by('any').checked)words.push('any=1');
  if(by('group').value)words.push('group='+encodeURIComponent(by('group').value));
  if(sorted.column)words.push('sort='+encodeURIComponent((sorted.down?'-':'')+sorted.column.name));
  try{history.replaceState(null,'','#'+words.join('&'))}catch(e){}
}
columns.forEach(function(c){
  var l=make('label',undefined,by('columns')),mark=make('input',undefined,l);
  mark.type='checkbox';mark.checked=c.shown;l.appendChild(document.createTextNode(' '+c.name));
  mark.onchange=function(){c.shown=mark.checked;heads();draw()};
  if(c.values.length<=200&&c.values.length>1)make('option',c.name,by('group')).value=c.name;
});
location.hash.slice(1).split('&').forEach(function(word){
  var k=word.indexOf('='),v;if(k<0)return;
  try{v=decodeURIComponent(word.slice(k+1))}catch(e){return}
  if(word.startsWith('filter='))by('filter').value=v;
  if(word.startsWith('any='))by('any').checked=true;
  if(word.startsWith('group=')&&columns.some(function(c){return c.name===v}))by('group').value=v;
  if(word.startsWith('sort=')){var down=v[0]==='-',c=columns.find(function(c){return c.name===v.slice(down?1:0)});if(c)sorted={column:c,down:down}}
});
var timer;
by('filter').oninput=function(){clearTimeout(timer);timer=setTimeout(select,80)};
by('any').onchange=by('group').onchange=select;
by('log').onchange=curves;
by('none').onclick=function(){chosen=[];draw();curves()};
by('box').onscroll=draw;
window.addEventListener('resize',function(){draw();curves()});
by('box').onkeydown=function(event){
  var box=by('box'),page=Math.max(1,Math.floor(box.clientHeight/kHeight)-2),move={ArrowDown:1,ArrowUp:-1,PageDown:page,PageUp:-page,Home:-1e9,End:1e9}[event.key];
  if(event.target!==box)return;
  if(move){
    at=Math.max(0,Math.min(lines.length-1,at+move));
    var y=at*kHeight;if(y<box.scrollTop)box.scrollTop=y;if(y+3*kHeight>box.scrollTop+box.clientHeight)box.scrollTop=y+3*kHeight-box.clientHeight;
    draw();
  }else if(event.key===' '&&lines[at]&&lines[at].row!==undefined)choose(lines[at].row);
  else if(event.key==='Enter'&&lines[at]&&data.links[lines[at].row])location.href=data.links[lines[at].row];
  else return;
  event.preventDefault();
};
var every=document.querySelector('meta[name=zs-every]');
if(every)setInterval(function(){if(!chosen.length)location.reload()},1000*every.content);
heads();select();
})();
